//! Why a job's programs cannot be answered, with the remedy.

use std::path::PathBuf;

/// Why the server cannot begin, or has not recorded all that it did.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine refused.
    #[error(transparent)]
    Host(#[from] forebay_host::Error),
    /// What was to be crossed out in the list of requests.
    #[error("the list of what programs asked to be staged out, in {}, is not up to date: {error}", allocation.display())]
    RequestsNotKept {
        /// The allocation that holds the list.
        allocation: PathBuf,
        /// What was refused.
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
