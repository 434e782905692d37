//! What earlier jobs have left: looked at, drained and taken away.

use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay_host::files::{self, Kind};
use forebay_host::process::{self, Caught, Identity, Liveness};
use forebay_host::{clock, machine, namespace};
use forebay_store::Allocation;
use forebay_store::persistent::namespace_in;

use crate::persistent::{Roots, asked_of, remaining_of, remove_uses};
use crate::profile::complete_killed;
use crate::record::{Phase, Place, Record, Recorded, Records};
use crate::requests::{open_in, remove_parts};
use crate::staging::{StageOut, Staging};
use crate::{Direction, Error, RUN_VARIABLE, Staged, StagingProgress, StagingWish};

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

impl Recorded {
    /// Looks at the machine.
    ///
    /// # Errors
    /// If /proc cannot be read.
    pub fn state(&self) -> Result<State, Error> {
        let record = &self.record;
        match record.runner.liveness()? {
            Liveness::Unknown => return Ok(State::Elsewhere),
            Liveness::Alive => return Ok(State::Running),
            Liveness::Gone => {}
        }
        let same_boot = record.runner.is_of_this_boot()?;
        match &record.place {
            // A job that ends well takes its record away last.
            Some(_) | None if files::status(self.path()).is_err() => return Ok(State::Running),
            Some(place) if place.mounted && !(same_boot && self.view_is_held()) => {
                // Its processes may write in what it does not own.
                return match record.persistent.is_empty() {
                    true => Ok(State::Lost),
                    false => self.with_processes(State::Lost),
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
        self.with_processes(State::Left { processes })
    }

    /// Such a state, unless processes are alive.
    fn with_processes(&self, none: State) -> Result<State, Error> {
        match self.processes() {
            Ok(processes) if processes.is_empty() => Ok(none),
            Ok(processes) => Ok(State::Left { processes }),
            // We are in a container, or in a job.
            Err(Error::Host(error)) if error.is_denied() => Ok(State::Elsewhere),
            Err(error) => Err(error),
        }
    }

    /// Living processes that may write in the allocation: of the job, in its view, or at work in it.
    fn processes(&self) -> Result<Vec<i32>, Error> {
        let record = &self.record;
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
            found.extend(remaining_of(record)?);
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// Where the data can be reached, if there are any: in the job's own allocation if that is there, else in
    /// the first persistent one that it uses.
    #[must_use]
    pub fn data(&self) -> Option<PathBuf> {
        let own = self.record.place.as_ref();
        let own = own.map(|place| self.record.reachable_root(&place.root));
        let first = self.record.persistent.first();
        let persistent = first.map(|one| namespace_in(&one.root));
        let is_there = own.as_ref().is_some_and(|own| files::status(own).is_ok());
        if is_there { own } else { persistent.or(own) }
    }

    /// Was there a script that may have written something which is to be staged out yet?
    #[must_use]
    pub fn is_undrained(&self) -> bool {
        match self.record.phase {
            Phase::Preparing => false,
            Phase::Removing => self.record.stages_out(),
            Phase::Running | Phase::Kept => !self.stages_nothing_out(),
        }
    }

    /// Neither the script nor its programs have asked for something to be staged out that has not arrived.
    fn stages_nothing_out(&self) -> bool {
        // Yes, if nobody can tell.
        let is_asked = || self.open_requests().map_or(true, |open| !open.is_empty());
        !self.record.stages_out() && !is_asked()
    }

    /// May its programs have asked for something to be staged out, so that only its own machine can tell?
    #[must_use]
    pub fn may_be_asked(&self) -> bool {
        let record = &self.record;
        let has_begun = matches!(record.phase, Phase::Running | Phase::Kept);
        let is_out_of_sight = |place: &Place| place.mounted || files::status(&place.root).is_err();
        let is_unknown = record.place.as_ref().is_some_and(is_out_of_sight);
        has_begun && !record.keep && !record.stages_out() && is_unknown
    }

    /// Is it for the user alone to say that it can go? So it is if he wants it kept, or if a script may
    /// have written something that nothing stages out.
    #[must_use]
    pub fn is_only_the_users(&self) -> bool {
        let stages_nothing_out = || self.stages_nothing_out() && self.record.place.is_some();
        match self.record.phase {
            Phase::Preparing | Phase::Removing => false,
            Phase::Running | Phase::Kept => self.record.keep || stages_nothing_out(),
        }
    }

    /// Stages out what is still to be staged out, and takes away all that the job had. If something does
    /// not arrive, nothing is taken away, and the account of the staging lists it. We must not have
    /// started a thread yet; afterwards we may be in the job's view.
    ///
    /// # Errors
    /// If the job is running, or something cannot be taken away.
    pub fn clean(
        mut self,
        how: Cleaning,
        caught: Caught,
        watcher: &dyn StagingProgress,
    ) -> Result<Option<Staged>, Error> {
        let lock = match self.lock() {
            // It has ended by itself meanwhile.
            Err(Error::Host(error)) if error.is_not_found() => return Ok(None),
            locked => locked?,
        };
        let mut state = self.state()?;
        // It may have gone on between our look at the record and at its process.
        while self.reread()? {
            state = self.state()?;
        }
        match &state {
            State::Running => return Err(Error::IsRunning(self.record.id)),
            State::Elsewhere if how.discard => {
                self.remove()?; // what it names is not ours to judge
                return Ok(None);
            }
            State::Elsewhere => return Err(Error::Elsewhere(self.record.runner.host)),
            State::Unreachable if !how.discard => {
                let place = self.record.place.map(|place| place.root);
                return Err(Error::Unreachable(place.unwrap_or_default()));
            }
            State::Left { processes } if !processes.is_empty() => {
                self.end_processes(processes, how)?;
                state = self.state()?; // perhaps they were all that is left
            }
            State::Left { .. } | State::Lost | State::Unreachable => {}
        }
        let (state, is_inside) = self.go_inside(state, how)?;
        if state == State::Lost {
            // What lay in the job's own allocation cannot be drained any more; the rest can.
            self.update(|record| {
                record.stage_out.retain(|stage| stage.persistent.is_some());
                record.drain_to.clear();
            })?;
        }
        let drains = is_inside || (!how.discard && self.is_undrained());
        self.remove_half_done(state == State::Lost || !drains, watcher);
        let drained = drains.then(|| self.drain(is_inside, how.staging, caught, watcher));
        let staged = drained.transpose()?;
        if staged
            .as_ref()
            .is_some_and(|staged| !staged.failures.is_empty())
        {
            return Ok(staged);
        }
        let asked = match state {
            State::Lost if !how.discard => asked_of(&self.record)?,
            _ => Vec::new(),
        };
        if !asked.is_empty() {
            self.update(Record::is_drained)?;
            return Err(Error::RequestsLost(asked));
        }
        // Killed from here on, the next one must not take what is half taken away for the results.
        self.update(Record::is_removed)?;
        if let Some(Err(error)) = self.record.profile.as_deref().map(complete_killed) {
            watcher.warning(&error.to_string());
        }
        self.take_away(is_inside)?;
        drop(lock);
        Ok(staged)
    }

    fn end_processes(&self, found: &[i32], how: Cleaning) -> Result<(), Error> {
        if !how.end_processes {
            return Err(Error::HasProcesses(found.to_vec()));
        }
        process::end(found, false)?;
        let began = clock::now();
        loop {
            let left = self.processes()?;
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
    fn go_inside(&self, state: State, how: Cleaning) -> Result<(State, bool), Error> {
        let Some(keeper) = self.record.keeper.filter(|_| !how.discard) else {
            return Ok((state, false));
        };
        let mut entered = Ok(false);
        if self.is_undrained() && self.view_is_held() {
            entered = namespace::enter(keeper).map(|()| true);
        }
        let is_memory = |place: &Place| place.mounted;
        match entered {
            Ok(true) => Ok((state, true)),
            entered if self.view_is_held() => Ok((state, entered.map_err(Error::View)?)),
            _ if self.record.place.as_ref().is_some_and(is_memory) => Ok((State::Lost, false)),
            _ => Ok((state, false)),
        }
    }

    fn view_is_held(&self) -> bool {
        self.record.keeper.is_some_and(Identity::holds_view)
    }

    fn drain(
        &self,
        is_inside: bool,
        how: StagingWish,
        caught: Caught,
        watcher: &dyn StagingProgress,
    ) -> Result<Staged, Error> {
        if self.record.keeper.is_some() && !is_inside {
            // The destinations may be paths that only the view showed.
            return Err(Error::ViewIsGone(self.data().unwrap_or_default()));
        }
        let events = caught.watch(self.record.keeper);
        let place = self.record.place.as_ref();
        let allocation = place.map(|place| Allocation::found(place.root.clone(), place.mounted));
        if let Some(allocation) = &allocation {
            remove_parts(open_in(allocation.root())?, &self.record.id)?;
        }
        self.remove_drained_parts()?;
        let stage_out = StageOut {
            stages: &self.record.stage_out,
            elsewhere: self.record.drain_to.clone(),
            roots: Roots::of_record(&self.record, allocation.as_ref()),
            allocation: allocation.as_ref(),
        };
        let stops = events.stops();
        let journal = stage_out.plan(self, &|_| stops.count() == 0)?;
        let staging = Staging {
            direction: Direction::Out,
            tag: &self.record.id,
            stops: events.stops(),
            watcher,
            into_fresh: false,
            how,
        };
        let staged = staging.carry_out(&journal, 0);
        if !staged.failures.is_empty() {
            let root = allocation.as_ref().map(Allocation::root);
            self.list_not_safe(&journal, root, None)?.1?;
        }
        Ok(staged)
    }

    /// Removes what is half done elsewhere than in the job's allocation.
    fn remove_half_done(&self, also_out: bool, watcher: &dyn StagingProgress) {
        if self.record.phase == Phase::Preparing {
            // What it staged into a persistent allocation would stay there half done.
            if let Err(error) = self.stage_in_half_done() {
                watcher.warning(&error.to_string());
            }
        }
        if also_out {
            // What a killed stage-out left half done is at the destination, not in the allocation.
            if let Err(error) = self.half_done(watcher) {
                watcher.warning(&error.to_string());
            }
        }
    }

    /// Removes files that are half staged out. From outside of the view: the job may be discarded
    /// because its view cannot be entered any more.
    fn half_done(&self, watcher: &dyn StagingProgress) -> Result<(), Error> {
        if let Some(journal) = self.begun_out()? {
            journal.remove_parts(&self.record.id)?;
        }
        let unlisted = self.remove_drained_parts()?;
        for directory in unlisted.iter().filter(|_| self.record.keeper.is_some()) {
            let (directory, id) = (directory.display(), &self.record.id);
            watcher.warning(&format!(
                "what is half drained in {directory}, as the job called it, was not looked for: .forebay-{id}-d*.part"
            ));
        }
        remove_parts(self.open_requests()?, &self.record.id)
    }

    fn take_away(self, inside: bool) -> Result<(), Error> {
        let record = &self.record;
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
        match self.remove() {
            Err(Error::Host(error)) => gone(Err(error)),
            removed => removed,
        }
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
