//! Why a job cannot be cleaned, with the remedy.

use std::path::PathBuf;

/// Why nothing can be said of a job, or it cannot be cleaned.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine refused.
    #[error(transparent)]
    Host(#[from] forebay_host::Error),
    /// Staging cannot go on.
    #[error(transparent)]
    Mover(#[from] forebay_mover::Error),
    /// The store refused.
    #[error(transparent)]
    Store(#[from] forebay_store::Error),
    /// The job's record cannot be used.
    #[error(transparent)]
    Record(#[from] forebay_record::Error),
    /// The machine does not allow to enter the job's view of the file system.
    #[error("no private view of the file system: {0}")]
    View(forebay_host::Error),
    /// A job that is running is not cleaned.
    #[error("job {0} is running")]
    IsRunning(String),
    /// Another machine's leftovers can be judged there only.
    #[error("the job ran on {0}, outside of this container or job if we are in one")]
    Elsewhere(String),
    /// A copy of an allocation was asked for.
    #[error("job {0} has no allocation whose files could be copied")]
    NothingToRescue(String),
    /// A copy in the allocation would be removed with it.
    #[error("{} is in the job's allocation, which is removed afterwards", .0.display())]
    RescueInside(PathBuf),
    /// Perhaps a file system is not mounted.
    #[error("the allocation {} is not there", .0.display())]
    Unreachable(PathBuf),
    /// Files of persistent allocations, which the job's own list alone named.
    #[error("the list of what programs asked to be staged out of {} went with the job's memory", .0.join(", "))]
    RequestsLost(Vec<String>),
    /// Nobody can tell any more what stood under its paths.
    #[error("the view in which the job ran is gone, and with it the paths of --map; its data are in {}", .0.display())]
    ViewIsGone(PathBuf),
    /// Processes of a job whose `forebay run` was killed.
    #[error("processes of the job are still alive: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))]
    HasProcesses(Vec<i32>),
}

impl Error {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Host(error) if error.is_not_found() => "check the path",
            Self::Host(_) => return None,
            Self::Mover(error) => return error.hint(),
            Self::Store(error) => return Some(error.hint()),
            Self::Record(error) => return error.hint(),
            Self::View(_) => {
                "forebay doctor says what this machine allows; --map, memory:huge and /mnt/bb need it"
            }
            Self::NothingToRescue(_) => "leave --to out",
            Self::RescueInside(_) => "name another directory with --to",
            Self::IsRunning(_) => "stop it with Ctrl-C or kill -TERM: it stages out before it ends",
            Self::Elsewhere(_) => {
                "run forebay clean there; forebay clean --discard JOB here forgets it and touches nothing"
            }
            Self::Unreachable(_) => {
                "mount its file system; if the data are gone for good: forebay clean --discard JOB"
            }
            Self::RequestsLost(_) => {
                "copy what is wanted out of the persistent allocation, then forebay clean --discard JOB"
            }
            Self::ViewIsGone(_) => "copy what is wanted, then forebay clean --discard JOB",
            Self::HasProcesses(_) => "wait until they have ended, or end them with --kill",
        };
        Some(hint.to_owned())
    }
}

/// What does not exist need not be removed.
pub(crate) fn ignore_not_found(removed: forebay_host::Result<()>) -> Result<(), Error> {
    match removed {
        Err(error) if error.is_not_found() => Ok(()),
        removed => Ok(removed?),
    }
}
