//! Why the record of a job, or a file next to it, cannot be used, with the remedy.

use std::path::PathBuf;

/// Why a job's record cannot be kept, read or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine refused.
    #[error(transparent)]
    Host(#[from] forebay_host::Error),
    /// A journal cannot be used.
    #[error(transparent)]
    Mover(#[from] forebay_mover::Error),
    /// No state directory accepts the job's record.
    #[error("no state directory takes the job's record{}", .0.as_ref().map_or_else(String::new, |e| format!(": {e}")))]
    NoState(Option<forebay_host::Error>),
    /// The list of stage-out requests cannot be used.
    #[error(
        "the list of what programs asked to be staged out, {}, cannot be used: {error}",
        forebay_host::files::printable(path)
    )]
    Requests {
        /// The path of the list.
        path: PathBuf,
        /// The SQLite error.
        error: rusqlite::Error,
    },
    /// Another process cleans the same job.
    #[error("job {0} is being cleaned by another process")]
    IsBeingCleaned(String),
    /// The directory for temporary files is missing, or its path cannot be used in PATH.
    #[error("the directory for temporary files, {}, does not exist, or has a colon or what is not UTF-8 in its name", forebay_host::files::printable(.0))]
    TemporaryDirectory(PathBuf),
    /// No directory can be created in the directory for temporary files.
    #[error("the directory for temporary files cannot be used: {0}")]
    TemporaryRefused(forebay_host::Error),
}

impl Error {
    /// The remedy.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Host(error) => return error.hint().map(str::to_owned),
            Self::Mover(error) => return error.hint(),
            Self::NoState(_) => "set FOREBAY_STATE to a directory of yours",
            Self::Requests { .. } => {
                "nothing was deleted: copy what is wanted, then forebay clean --discard JOB"
            }
            Self::IsBeingCleaned(_) => "wait for it",
            Self::TemporaryDirectory(_) => "set TMPDIR to a directory that can stand in PATH",
            Self::TemporaryRefused(_) => "set TMPDIR to a directory that you may write in",
        };
        Some(hint.to_owned())
    }
}
