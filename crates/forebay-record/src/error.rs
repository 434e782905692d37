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
    /// There is no place to write down what the job has.
    #[error("no state directory takes the job's record{}", .0.as_ref().map_or_else(String::new, |e| format!(": {e}")))]
    NoState(Option<forebay_host::Error>),
    /// The list of the stage-outs that programs asked for.
    #[error("the list of what programs asked to be staged out, {}, cannot be used: {error}", path.display())]
    Requests {
        /// The list.
        path: PathBuf,
        /// What is wrong with it.
        error: rusqlite::Error,
    },
    /// Two at once would be in each other's way.
    #[error("job {0} is being cleaned by another process")]
    IsBeingCleaned(String),
    /// The directory for temporary files cannot be used.
    #[error("the directory for temporary files, {}, does not exist, or has a colon or what is not UTF-8 in its name", .0.display())]
    TemporaryDirectory(PathBuf),
    /// The directory for temporary files takes nothing.
    #[error("the directory for temporary files cannot be used: {0}")]
    TemporaryRefused(forebay_host::Error),
}

impl Error {
    /// What to do about it.
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
