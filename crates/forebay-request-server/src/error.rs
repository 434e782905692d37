//! Errors of the request server, with their remedies.

use std::path::PathBuf;

/// Why the server cannot start or did not record everything.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error(transparent)]
    Host(#[from] forebay_host::Error),
    /// A completed or revoked request could not be removed from the list.
    #[error("the list of what programs asked to be staged out, in {}, is not up to date: {error}", directory.display())]
    RequestsNotKept {
        /// The directory of the list.
        directory: PathBuf,
        /// The error of the system.
        error: std::io::Error,
    },
}

impl Error {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Host(error) => error.hint().map(str::to_owned),
            Self::RequestsNotKept { .. } => Some(
                "files that had arrived, or were not wanted any more, are staged out once more"
                    .to_owned(),
            ),
        }
    }
}
