//! What is the matter with an earlier job, by a look at its record and at the machine.

use forebay_host::files;
use forebay_host::process::{self, Identity, Liveness};
use forebay_persistent::surviving_processes;
use forebay_record::{Phase, RUN_VARIABLE, Record, RecordFile};

use crate::Error;

/// What is the matter with a job that is written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobState {
    /// Its `forebay run` is alive.
    Running,
    /// Its `forebay run` was killed, or has kept the allocation.
    Left {
        /// Processes of the job that are still alive.
        processes: Vec<i32>,
    },
    /// The allocation is gone: the machine or the keeper was ended.
    Lost,
    /// The allocation's directory is not there: perhaps its file system is not mounted.
    Unreachable,
    /// It belongs to another machine or container, which alone can tell.
    Elsewhere,
}

/// What is the matter with a job, by a look at the machine.
///
/// # Errors
/// If /proc cannot be read.
pub fn state(recorded: &RecordFile) -> Result<JobState, Error> {
    let record = &recorded.record;
    match record.runner.liveness()? {
        Liveness::Unknown => return Ok(JobState::Elsewhere),
        Liveness::Alive => return Ok(JobState::Running),
        Liveness::Gone => {}
    }
    let same_boot = record.runner.is_of_this_boot()?;
    match &record.place {
        // A job that succeeds removes its record last.
        Some(_) | None if files::status(recorded.path()).is_err() => return Ok(JobState::Running),
        Some(place) if place.mounted && !(same_boot && view_is_alive(record)) => {
            // Its processes may write in what it does not own.
            return match record.persistent.is_empty() {
                true => Ok(JobState::Lost),
                false => orphaned_or(record, JobState::Lost),
            };
        }
        Some(place) if !place.mounted && files::status(&place.root).is_err() => {
            // Before the script began there was nothing in it to be missed.
            return Ok(match record.phase {
                Phase::Preparing | Phase::Removing => JobState::Lost,
                Phase::Running | Phase::Kept => JobState::Unreachable,
            });
        }
        _ => {}
    }
    let processes = Vec::new();
    orphaned_or(record, JobState::Left { processes })
}

/// Such a state, unless processes are alive.
fn orphaned_or(record: &Record, none: JobState) -> Result<JobState, Error> {
    match processes(record) {
        Ok(processes) if processes.is_empty() => Ok(none),
        Ok(processes) => Ok(JobState::Left { processes }),
        // We are in a container, or in a job.
        Err(error) if error.is_denied() => Ok(JobState::Elsewhere),
        Err(error) => Err(error.into()),
    }
}

/// Living processes that may write in the allocation: of the job, in its view, or at work in it.
pub(crate) fn processes(record: &Record) -> forebay_host::Result<Vec<i32>> {
    // What is older than the run is none of its processes; after a restart everything is younger.
    let same_boot = record.runner.is_of_this_boot()?;
    let since = if same_boot { record.runner.process } else { Identity::default() };
    let run = record.job_directory.as_os_str();
    let mut found = process::with_env(RUN_VARIABLE, run, since)?;
    if let Some(keeper) = record.keeper.filter(|keeper| keeper.is_alive()) {
        found.extend(process::in_mount_namespace(keeper, since)?);
    }
    if let Some(place) = record.place.as_ref().filter(|place| !place.mounted) {
        found.extend(process::using_directory(&place.root, since)?);
    }
    if same_boot {
        found.extend(surviving_processes(record)?);
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

pub(crate) fn view_is_alive(record: &Record) -> bool {
    record.keeper.is_some_and(Identity::holds_view)
}
