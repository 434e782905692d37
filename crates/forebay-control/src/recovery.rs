//! What earlier jobs have left: looked at, drained and taken away.

mod error;

use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay_engine::Place;
use forebay_host::files::{self, Kind};
use forebay_host::messages::Messages;
use forebay_host::process::{self, Caught, Identity, Liveness};
use forebay_host::{clock, machine, namespace};
use forebay_store::Allocation;

use crate::{Direction, RUN_VARIABLE};
use forebay_persistent::{names_with_requests, remove_uses, surviving_processes};
use forebay_profile::mark_killed;
use forebay_record::{Phase, Record, Recorded, Records, StagingWish, open_in};
use forebay_staging::{Roots, StageOut, Staged, Staging, StagingProgress, remove_parts};

pub use error::Error;

/// Time processes have between SIGTERM and SIGKILL, and then to be gone.
const GRACE: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_millis(20);

/// What is the matter with a job that is written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
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

/// How a leftover is taken away.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cleaning {
    /// Delete without staging out.
    pub discard: bool,
    /// End processes that are still alive.
    pub end_processes: bool,
    /// How files are copied.
    pub staging: StagingWish,
}

/// What is the matter with a job, by a look at the machine.
///
/// # Errors
/// If /proc cannot be read.
pub fn state(recorded: &Recorded) -> Result<State, Error> {
    let record = &recorded.record;
    match record.runner.liveness()? {
        Liveness::Unknown => return Ok(State::Elsewhere),
        Liveness::Alive => return Ok(State::Running),
        Liveness::Gone => {}
    }
    let same_boot = record.runner.is_of_this_boot()?;
    match &record.place {
        // A job that ends well takes its record away last.
        Some(_) | None if files::status(recorded.path()).is_err() => return Ok(State::Running),
        Some(place) if place.mounted && !(same_boot && view_is_held(record)) => {
            // Its processes may write in what it does not own.
            return match record.persistent.is_empty() {
                true => Ok(State::Lost),
                false => with_processes(record, State::Lost),
            };
        }
        Some(place) if !place.mounted && files::status(&place.root).is_err() => {
            // Before the script began there was nothing in it to be missed.
            return Ok(match record.phase {
                Phase::Preparing | Phase::Removing => State::Lost,
                Phase::Running | Phase::Kept => State::Unreachable,
            });
        }
        _ => {}
    }
    let processes = Vec::new();
    with_processes(record, State::Left { processes })
}

/// Such a state, unless processes are alive.
fn with_processes(record: &Record, none: State) -> Result<State, Error> {
    match processes(record) {
        Ok(processes) if processes.is_empty() => Ok(none),
        Ok(processes) => Ok(State::Left { processes }),
        // We are in a container, or in a job.
        Err(error) if error.is_denied() => Ok(State::Elsewhere),
        Err(error) => Err(error.into()),
    }
}

/// Living processes that may write in the allocation: of the job, in its view, or at work in it.
fn processes(record: &Record) -> forebay_host::Result<Vec<i32>> {
    // What is older than the run is none of its processes; after a restart everything is younger.
    let same_boot = record.runner.is_of_this_boot()?;
    let since = if same_boot {
        record.runner.process
    } else {
        Identity::default()
    };
    let run = record.job_directory.as_os_str();
    let mut found = process::with_variable(RUN_VARIABLE, run, since)?;
    if let Some(keeper) = record.keeper.filter(|keeper| keeper.is_alive()) {
        found.extend(process::in_view_of(keeper, since)?);
    }
    if let Some(place) = record.place.as_ref().filter(|place| !place.mounted) {
        found.extend(process::at_work_in(&place.root, since)?);
    }
    if same_boot {
        found.extend(surviving_processes(record)?);
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Stages out what is still to be staged out, and takes away all that the job had. If something does
/// not arrive, nothing is taken away, and the account of the staging lists it. We must not have
/// started a thread yet; afterwards we may be in the job's view.
///
/// # Errors
/// If the job is running, or something cannot be taken away.
pub fn clean(
    mut job: Recorded,
    how: Cleaning,
    caught: Caught,
    watcher: &dyn StagingProgress,
) -> Result<Option<Staged>, Error> {
    let lock = match job.lock() {
        // It has ended by itself meanwhile.
        Err(forebay_record::Error::Host(error)) if error.is_not_found() => return Ok(None),
        locked => locked?,
    };
    let mut now = state(&job)?;
    // It may have gone on between our look at the record and at its process.
    while job.reload()? {
        now = state(&job)?;
    }
    match &now {
        State::Running => return Err(Error::IsRunning(job.record.id)),
        State::Elsewhere if how.discard => {
            job.remove()?; // what it names is not ours to judge
            return Ok(None);
        }
        State::Elsewhere => return Err(Error::Elsewhere(job.record.runner.host)),
        State::Unreachable if !how.discard => {
            let place = job.record.place.map(|place| place.root);
            return Err(Error::Unreachable(place.unwrap_or_default()));
        }
        State::Left { processes } if !processes.is_empty() => {
            end_processes(&job.record, processes, how)?;
            now = state(&job)?; // perhaps they were all that is left
        }
        State::Left { .. } | State::Lost | State::Unreachable => {}
    }
    let (now, is_inside) = go_inside(&job, now, how)?;
    if now == State::Lost {
        // What lay in the job's own allocation cannot be drained any more; the rest can.
        job.update(|record| {
            record.stage_out.retain(|stage| stage.persistent.is_some());
            record.drain_to.clear();
        })?;
    }
    let drains = is_inside || (!how.discard && job.needs_stage_out());
    remove_half_done(&job, now == State::Lost || !drains, watcher);
    let drained = drains.then(|| drain(&job, is_inside, how.staging, caught, watcher));
    let staged = drained.transpose()?;
    let is_incomplete = |staged: &Staged| !staged.failures.is_empty();
    if staged.as_ref().is_some_and(is_incomplete) {
        return Ok(staged);
    }
    let asked = match now {
        State::Lost if !how.discard => names_with_requests(&job.record)?,
        _ => Vec::new(),
    };
    if !asked.is_empty() {
        job.update(Record::clear_stage_out)?;
        return Err(Error::RequestsLost(asked));
    }
    // Killed from here on, the next one must not take what is half taken away for the results.
    job.update(Record::mark_removing)?;
    if let Some(Err(error)) = job.record.profile.as_deref().map(mark_killed) {
        watcher.warning(&error.to_string());
    }
    take_away(job, is_inside)?;
    drop(lock);
    Ok(staged)
}

fn end_processes(record: &Record, found: &[i32], how: Cleaning) -> Result<(), Error> {
    if !how.end_processes {
        return Err(Error::HasProcesses(found.to_vec()));
    }
    process::end(found, false)?;
    let began = clock::now();
    loop {
        let left = processes(record)?;
        if left.is_empty() {
            return Ok(());
        }
        if began.elapsed() > GRACE {
            process::end(&left, true)?;
        }
        if began.elapsed() > 2 * GRACE {
            return Err(Error::HasProcesses(left));
        }
        clock::sleep(STEP);
    }
}

/// Enters the job's view if something is to be staged out. Are we inside, and what is the matter with the job
/// now? Its keeper may die at any moment: what could not be read in its memory then was not nothing.
fn go_inside(job: &Recorded, state: State, how: Cleaning) -> Result<(State, bool), Error> {
    let record = &job.record;
    let Some(keeper) = record.keeper.filter(|_| !how.discard) else {
        return Ok((state, false));
    };
    let mut entered = Ok(false);
    if job.needs_stage_out() && view_is_held(record) {
        entered = namespace::enter(keeper).map(|()| true);
    }
    let is_memory = |place: &Place| place.mounted;
    match entered {
        Ok(true) => Ok((state, true)),
        entered if view_is_held(record) => Ok((state, entered.map_err(Error::View)?)),
        _ if record.place.as_ref().is_some_and(is_memory) => Ok((State::Lost, false)),
        _ => Ok((state, false)),
    }
}

fn view_is_held(record: &Record) -> bool {
    record.keeper.is_some_and(Identity::holds_view)
}

fn drain(
    job: &Recorded,
    is_inside: bool,
    how: StagingWish,
    caught: Caught,
    watcher: &dyn StagingProgress,
) -> Result<Staged, Error> {
    let record = &job.record;
    if record.keeper.is_some() && !is_inside {
        // The destinations may be paths that only the view showed.
        return Err(Error::ViewIsGone(job.data().unwrap_or_default()));
    }
    let events = caught.watch(record.keeper);
    let place = record.place.as_ref();
    let allocation = place.map(|place| Allocation::found(place.root.clone(), place.mounted));
    if let Some(allocation) = &allocation {
        remove_parts(open_in(allocation.root())?, &record.id)?;
    }
    job.remove_drained_parts()?;
    let stage_out = StageOut {
        stages: &record.stage_out,
        elsewhere: record.drain_to.clone(),
        roots: Roots::of_record(record, allocation.as_ref()),
        allocation: allocation.as_ref(),
    };
    let stops = events.stops();
    let journal = stage_out.plan(job, &|_| stops.count() == 0)?;
    let staging = Staging {
        direction: Direction::Out,
        tag: &record.id,
        stops: events.stops(),
        watcher,
        into_new_allocation: false,
        how,
    };
    let staged = staging.carry_out(&journal, 0);
    if !staged.failures.is_empty() {
        let root = allocation.as_ref().map(Allocation::root);
        job.list_not_safe(&journal, root, None)?.1?;
    }
    Ok(staged)
}

/// Removes what is half done elsewhere than in the job's allocation.
fn remove_half_done(job: &Recorded, also_out: bool, watcher: &dyn Messages) {
    let warn = |error: forebay_record::Error| watcher.warning(&error.to_string());
    if job.record.phase == Phase::Preparing {
        // What it staged into a persistent allocation would stay there half done.
        job.remove_partial_stage_in().unwrap_or_else(warn);
    }
    if also_out {
        // What a killed stage-out left half done is at the destination, not in the allocation.
        half_done(job, watcher).unwrap_or_else(warn);
    }
}

/// Removes files that are half staged out. From outside of the view: the job may be discarded
/// because its view cannot be entered any more.
fn half_done(job: &Recorded, watcher: &dyn Messages) -> Result<(), forebay_record::Error> {
    let record = &job.record;
    if let Some(journal) = job.stage_out_journal()? {
        journal.remove_parts(&record.id)?;
    }
    let unlisted = job.remove_drained_parts()?;
    for directory in unlisted.iter().filter(|_| record.keeper.is_some()) {
        let (directory, id) = (directory.display(), &record.id);
        watcher.warning(&format!(
            "what is half drained in {directory}, as the job called it, was not looked for: .forebay-{id}-d*.part"
        ));
    }
    Ok(remove_parts(job.open_requests()?, &record.id)?)
}

fn take_away(job: Recorded, inside: bool) -> Result<(), Error> {
    let record = &job.record;
    if let Some(place) = record.place.clone() {
        let allocation = Allocation::found(place.root, place.mounted);
        // From outside, the end of the keeper takes the mount away.
        if !place.mounted || inside {
            match allocation.free() {
                Err(forebay_store::Error::Host(error)) => gone(Err(error))?,
                freed => freed?,
            }
        }
    }
    if let Some(keeper) = record.keeper {
        keeper.kill();
        let began = clock::now();
        while keeper.is_alive() && began.elapsed() < GRACE {
            clock::sleep(STEP);
        }
    }
    gone(remove_uses(record))?;
    gone(files::remove_tree(&record.job_directory))?;
    if let Some(state) = &record.emulation {
        gone(files::remove_file(state))?;
    }
    match job.remove() {
        Err(forebay_record::Error::Host(error)) => gone(Err(error)),
        removed => Ok(removed?),
    }
}

/// A job that is about to be recorded has been there for less time than this.
const UNRECORDED_MS_MAX: u128 = 2000;

/// Removes what jobs have left that were killed before anything was recorded: an empty directory, the
/// beginning of a record. The id in their names is the time they were made.
///
/// # Errors
/// If something cannot be listed or removed.
pub fn remove_unrecorded(records: &Records) -> Result<(), Error> {
    let temporary = std::env::temp_dir();
    for name in files::names_in(&temporary)? {
        let id = name.to_str().and_then(|name| name.strip_prefix("forebay-"));
        let path = temporary.join(&name);
        let ours = || {
            let status = files::status_of_name(&path);
            status.is_ok_and(|s| s.kind == Kind::Directory && s.owner == machine::user_id())
        };
        if id.is_some_and(|id| was_never_recorded(id, records)) && ours() {
            // Whoever has not recorded it yet may do so just now.
            gone(files::remove_empty(&path))?;
        }
    }
    for path in &records.begun {
        if id_of(path).is_some_and(|id| was_never_recorded(id, records)) {
            gone(files::remove_file(path))?;
        }
    }
    Ok(())
}

/// Is this the id of a job that was killed before it was recorded?
#[must_use]
pub fn was_never_recorded(id: &str, records: &Records) -> bool {
    let made = id.parse().unwrap_or(u128::MAX);
    let old = clock::unix_milliseconds().saturating_sub(made) > UNRECORDED_MS_MAX;
    let recorded = |path: &PathBuf| id_of(path) == Some(id);
    old && made != u128::MAX
        && !records.found.iter().any(|job| job.record.id == id)
        && !records.unreadable.iter().any(|(path, _)| recorded(path))
}

/// The job's id in the name of a record.
fn id_of(record: &Path) -> Option<&str> {
    record.file_name()?.to_str()?.split('-').next()
}

/// What is not there need not be taken away.
fn gone(removed: forebay_host::Result<()>) -> Result<(), Error> {
    match removed {
        Err(error) if error.is_not_found() => Ok(()),
        removed => Ok(removed?),
    }
}
