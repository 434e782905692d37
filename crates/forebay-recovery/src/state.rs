//! Determines the state of an earlier job from its record and the machine.
//! Changes nothing. In a container or job that hides processes, an unknown state is `OtherHost`.

use forebay_engine::NodesUse;
use forebay_host::process::{self, Identity, Liveness};
use forebay_host::{files, mounts, users};
use forebay_persistent::surviving_processes;
use forebay_record::{Phase, RUN_VARIABLE, Record, RecordFile};

use crate::Error;

/// The state of a recorded job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobState {
    /// Its `forebay run` is alive.
    Running,
    /// Its `forebay run` was killed, or kept the allocation.
    Orphaned {
        /// Processes of the job that are still alive.
        processes: Vec<i32>,
    },
    /// The allocation is gone: the machine restarted, or the keeper ended.
    AllocationLost,
    /// The directory of the allocation is missing; its file system may not be mounted.
    Unreachable,
    /// It belongs to another machine or container. Only that one knows its state.
    OtherHost,
}

/// Determines the state of a job. Changes nothing.
///
/// # Errors
/// If /proc cannot be read.
pub fn state(recorded: &RecordFile) -> Result<JobState, Error> {
    let record = &recorded.record;
    match record.runner.liveness()? {
        Liveness::Unknown => return Ok(JobState::OtherHost),
        Liveness::Alive => return Ok(JobState::Running),
        Liveness::Gone => {}
    }
    match &record.place {
        // A successful job removes its record last, so it is ending.
        Some(_) | None if files::status(recorded.path()).is_err() => return Ok(JobState::Running),
        Some(place) if place.mounted && !view_is_alive(record) => {
            // Its processes may still write in persistent allocations.
            return match record.persistent.is_empty() {
                true => Ok(JobState::AllocationLost),
                false => orphaned_or(record, JobState::AllocationLost),
            };
        }
        Some(place) if mounts_on_nodes(record) && !mounts::is_mount_point(&place.root)? => {
            let nodes = record.nodes.as_ref();
            match record.phase {
                // Its engine can be started again.
                Phase::Running | Phase::Kept if nodes.is_some_and(NodesUse::can_restart) => {}
                Phase::Running | Phase::Kept if nodes.is_some_and(|nodes| !nodes.in_memory) => {
                    return Ok(JobState::Unreachable);
                }
                _ => return Ok(JobState::AllocationLost),
            }
        }
        // A mount on nodes that does not answer is mounted again.
        Some(place)
            if !place.mounted
                && !mounts_on_nodes(record)
                && files::status(&place.root).is_err() =>
        {
            // In these phases the allocation holds nothing that exists only there.
            return Ok(match record.phase {
                Phase::Preparing | Phase::Removing => JobState::AllocationLost,
                Phase::Running | Phase::Kept => JobState::Unreachable,
            });
        }
        _ => {}
    }
    let processes = Vec::new();
    orphaned_or(record, JobState::Orphaned { processes })
}

/// Whether the job has nodes whose engine mounts the namespace.
fn mounts_on_nodes(record: &Record) -> bool {
    record.nodes.as_ref().is_some_and(|nodes| nodes.mounted)
}

/// Returns `Orphaned` if processes of the job are alive, else `none`.
fn orphaned_or(record: &Record, none: JobState) -> Result<JobState, Error> {
    match processes(record) {
        // This process runs in a job, and those of other jobs are hidden there.
        Ok(found)
            if found.is_empty() && process::some_are_hidden() && users::in_user_namespace() =>
        {
            Ok(JobState::OtherHost)
        }
        Ok(processes) if processes.is_empty() => Ok(none),
        Ok(processes) => Ok(JobState::Orphaned { processes }),
        // This process runs in a container or in a job.
        Err(error) if error.is_denied() => Ok(JobState::OtherHost),
        Err(error) => Err(error.into()),
    }
}

/// Living processes that may write in the allocation: of the job, in its view, or using its directory.
pub(crate) fn processes(record: &Record) -> forebay_host::Result<Vec<i32>> {
    // A process older than the run does not belong to it. After a restart every process is younger.
    let same_boot = record.runner.is_of_this_boot()?;
    let since = if same_boot { record.runner.process } else { Identity::default() };
    let run = record.job_directory.as_os_str();
    let mut found = process::with_env(RUN_VARIABLE, run, since)?;
    if let Some(holder) = record.view_holder()?
        && let Some(view) = record.view.clone().or_else(|| holder.mount_namespace())
    {
        found.extend(process::in_mount_namespace(&view, since)?);
    }
    if let Some(place) = record.place.as_ref().filter(|place| !place.mounted) {
        // Engines on nodes may show their directory by a link; the kernel names what it leads to.
        let root = files::read_link(&place.root).unwrap_or_else(|_| place.root.clone());
        found.extend(process::using_directory(&root, since)?);
    }
    if same_boot {
        found.extend(surviving_processes(record)?);
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Also if that cannot be known, since processes of the job are hidden.
pub(crate) fn view_is_alive(record: &Record) -> bool {
    record.view_holder().map_or(true, |holder| holder.is_some())
}
