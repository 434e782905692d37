//! Forgets jobs whose records cannot be read. Only their names are known, not what the jobs hold.

use std::ffi::OsStr;
use std::path::Path;

use forebay_host::files::Kind;
use forebay_host::process::{self, Identity};
use forebay_host::{clock, files, system};
use forebay_mover::Journal;
use forebay_record::{RUN_VARIABLE, id_of};

use crate::error::{Error, ignore_not_found};
use crate::unrecorded::began_unix_ms;

/// Removes the record with the files next to it, the partial files that its journal names, and the job's directory.
/// The allocation stays. `end_processes` ends processes of the job that are alive.
///
/// # Errors
/// If the job is of another machine, may be running, processes of it are alive, or something cannot be removed.
pub fn forget_unreadable(record: &Path, end_processes: bool) -> Result<(), Error> {
    let stem = record.file_stem().unwrap_or_default().to_string_lossy();
    let id = id_of(record).unwrap_or_default();
    let runner = stem.strip_prefix(id).and_then(|rest| rest.strip_prefix('-'));
    let (pid, host) = runner.and_then(|runner| runner.split_once('@')).unwrap_or_default();
    if host != system::hostname() {
        return Err(Error::Elsewhere(host.to_owned()));
    }
    let process = pid.parse().ok().and_then(|pid| Identity::of(pid).ok());
    let lock = files::lock(record)?;
    if lock.is_none() || process.is_some_and(Identity::is_of_our_user) {
        return Err(Error::IsRunning(id.to_owned()));
    }
    // The directory of the job was below the TMPDIR that it had.
    let name = format!("forebay-{id}");
    let is_of_job = |value: &OsStr| Path::new(value).file_name() == Some(OsStr::new(&name));
    let processes = match oldest_process(id)? {
        Some(oldest) => process::with_env_where(RUN_VARIABLE, &is_of_job, oldest)?,
        None => Vec::new(),
    };
    if !processes.is_empty() && !end_processes {
        return Err(Error::HasProcesses(processes));
    }
    process::terminate(&processes, true)?;
    // A damaged journal names nothing.
    if let Ok(journal) = Journal::open_existing(&record.with_extension("journal")) {
        forebay_mover::remove_partial_files(&journal, id)?;
    }
    ignore_not_found(files::remove_tree(&std::env::temp_dir().join(&name)))?;
    let directory = files::parent_of(record);
    let own = format!("{stem}.");
    let mut names = files::names_in(directory)?;
    names.retain(|name| name.to_string_lossy().starts_with(&own));
    // The record last: after an error, it is still found.
    names.sort_by_key(|name| record.ends_with(name));
    names.iter().try_for_each(|name| {
        let path = directory.join(name);
        // The list of requests is a directory.
        let is_directory =
            files::status_of_name(&path).is_ok_and(|found| found.kind == Kind::Directory);
        let removed = match is_directory {
            true => files::remove_tree(&path),
            false => files::remove_file(&path),
        };
        ignore_not_found(removed)
    })
}

/// No process of the job is older than this one; none if the machine was restarted since the job began.
fn oldest_process(id: &str) -> Result<Option<Identity>, Error> {
    let began = began_unix_ms(id).unwrap_or_default();
    let age_ms = clock::unix_milliseconds().saturating_sub(began) + CLOCK_STEP_MS;
    let age_ticks = u64::try_from(age_ms / MS_PER_TICK).unwrap_or(u64::MAX);
    let oldest = Identity::ours()?.started_ticks.checked_sub(age_ticks);
    Ok(oldest.map(|started_ticks| Identity { pid: 0, started_ticks }))
}

/// The kernel counts start times of processes in hundredths of a second.
const MS_PER_TICK: u128 = 10;
/// The clock may have been set by so much since the job began.
const CLOCK_STEP_MS: u128 = 2000;
