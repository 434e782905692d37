//! Why a job cannot be cleaned, with the remedy.

use std::path::PathBuf;

/// Why the state of a job is unknown, or the job cannot be cleaned.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error(transparent)]
    Host(#[from] forebay_host::Error),
    /// Staging cannot continue.
    #[error(transparent)]
    Mover(#[from] forebay_mover::Error),
    /// The store reported an error.
    #[error(transparent)]
    Store(#[from] forebay_store::Error),
    /// The job's record cannot be used.
    #[error(transparent)]
    Record(#[from] forebay_record::Error),
    /// Entering the job's view of the file system failed.
    #[error("no private view of the file system: {0}")]
    View(forebay_host::Error),
    /// Nodes still hold something of the job.
    #[error("not removed: {}", .0.join("; "))]
    NodesLeft(Vec<String>),
    /// The engine on the nodes does not give the data back.
    #[error("the job's files cannot be read: {0}")]
    NotReadable(String),
    /// A running job cannot be cleaned.
    #[error("job {0} is running")]
    IsRunning(String),
    /// Only its own machine can check the leftovers of a job.
    #[error("the job ran on {0}, outside of this container or job if we are in one")]
    Elsewhere(String),
    /// A copy of an allocation was asked for.
    #[error("job {0} has no allocation whose files could be copied")]
    NothingToRescue(String),
    /// A copy in the allocation would be removed with it.
    #[error("{} is in the job's allocation, which is removed afterwards", forebay_host::files::printable(.0))]
    RescueInside(PathBuf),
    /// Perhaps a file system is not mounted.
    #[error("the allocation {} is not there", forebay_host::files::printable(.0))]
    Unreachable(PathBuf),
    /// The only list of requests for files of persistent allocations was in the job's memory.
    #[error("the list of what programs asked to be staged out of {} went with the job's memory", .0.join(", "))]
    RequestsLost(Vec<String>),
    /// The paths that the job saw can no longer be resolved.
    #[error("the view in which the job ran is gone, and with it the paths of --map; its data are in {}", forebay_host::files::printable(.0))]
    ViewIsGone(PathBuf),
    /// A destination is on another file system than when the job began.
    #[error("the file system of {} was unmounted since the job began, and only its view still has it", forebay_host::files::printable(.0))]
    Unmounted(PathBuf),
    /// The job has living processes, and its `forebay run` was killed.
    #[error("processes of the job are still alive: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))]
    HasProcesses(Vec<i32>),
}

impl Error {
    /// The remedy.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Host(error) | Self::Store(forebay_store::Error::Host(error)) => {
                return error.hint().map(str::to_owned);
            }
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
            Self::Unmounted(_) => {
                "copy what is wanted elsewhere with forebay stage out --job ID PATH DIR, then forebay clean --discard ID"
            }
            Self::ViewIsGone(_) => "copy what is wanted, then forebay clean --discard JOB",
            Self::NodesLeft(_) => {
                "once the nodes can be reached, run forebay clean again, or name another way with --launcher; forebay clean --discard forgets them"
            }
            Self::NotReadable(_) => {
                "run forebay clean again once the cause is removed; --launcher names another way to the nodes; if the data are gone for good: forebay clean --discard JOB"
            }
            Self::HasProcesses(_) => "wait until they have ended, or end them with --kill",
        };
        Some(hint.to_owned())
    }
}

/// Ignores that a file to remove does not exist.
pub(crate) fn ignore_not_found(removed: forebay_host::Result<()>) -> Result<(), Error> {
    match removed {
        Err(error) if error.is_not_found() => Ok(()),
        removed => Ok(removed?),
    }
}
