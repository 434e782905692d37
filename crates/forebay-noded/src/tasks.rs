//! Work that takes long: starts of engines, stagings and removals. One task at a time for each allocation, a limited
//! number for all. Assumes that who asked asks again. Results are in memory alone: a new daemon knows none.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use forebay_directive::{AccessMode, Direction};
use forebay_host::process::{Counters, Killer, TimeLimit};
use forebay_host::{clock, threads, users};
use forebay_site::messages::{Counts, Outcome, PoolAllocation, Progress, Staging};
use forebay_site::{Error, Site};
use parking_lot::{Condvar, Mutex};

use crate::engine_process::EngineSpec;
use crate::engines::Engines;
use crate::owner::{self, Owners, WorkResult};
use crate::pool::{PoolDirectory, belongs_to_another};
use crate::task_table::{Kind, State, Table, Task, count, is_cancelled};
use crate::work::{NAME, OwnNamespace, Work};

/// Tasks of which the daemon knows at most.
const KNOWN_MAX: usize = 20_000;
/// How long the result of a task can be asked for.
const KEPT: Duration = Duration::from_secs(3600);
/// The same when there are [`KNOWN_MAX`]. Whoever waits asks every 2 s.
const KEPT_IF_FULL: Duration = Duration::from_secs(30);
/// Attempts that can ask for one result. More would be calls that were all killed.
const ATTEMPTS_MAX: usize = 64;
/// Names of removed allocations. A late request must not make them again.
const REMOVED_MAX: usize = 100_000;
/// A process of the user that was killed or stopped is started again, so often without a result.
const INTERRUPTIONS_MAX: u32 = 20;
/// How long the user may have stopped a process, all stops together, until it is started again.
const STOPPED_MAX: Duration = Duration::from_secs(4);
/// The first wait after an interruption; it doubles up to the second.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// All tasks of the daemon.
#[derive(Clone)]
pub(crate) struct Tasks {
    shared: Arc<Shared>,
}

/// An allocation that is being made.
pub(crate) struct Creating {
    shared: Arc<Shared>,
    name: String,
}

impl Drop for Creating {
    fn drop(&mut self) {
        self.shared.table.lock().end_creating(&self.name);
    }
}

struct Shared {
    site: Site,
    node: String,
    owners: Arc<Owners>,
    engines: Arc<Engines>,
    table: Mutex<Table>,
    /// A task has ended.
    changed: Condvar,
}

impl Tasks {
    /// `node` is the name of this node.
    pub(crate) fn of(site: Site, node: String, owners: Arc<Owners>, engines: Arc<Engines>) -> Self {
        Self {
            shared: Arc::new(Shared {
                site,
                node,
                owners,
                engines,
                table: Mutex::default(),
                changed: Condvar::new(),
            }),
        }
    }

    /// Keeps removals of this allocation away until the result is dropped: a late request must not make again what
    /// another one removes.
    ///
    /// # Errors
    /// If the allocation is being removed, or was removed since the daemon started.
    pub(crate) fn begin_to_create(&self, name: &str) -> Result<Creating, Error> {
        let mut table = self.shared.table.lock();
        let is_removal =
            |task: &Task| task.kind == Kind::Remove && !matches!(task.state, State::Ended(..));
        if table.removed.contains(name) || table.tasks.get(name).is_some_and(is_removal) {
            return Err(Error::new(format!("{name} was removed")));
        }
        *table.creating.entry(name.to_owned()).or_default() += 1;
        Ok(Creating { shared: Arc::clone(&self.shared), name: name.to_owned() })
    }

    /// What was done since the daemon started.
    pub(crate) fn counts(&self) -> Counts {
        let table = self.shared.table.lock();
        let waiting = table.tasks.values().filter(|task| matches!(task.state, State::Waiting));
        Counts {
            running: table.running.values().sum::<usize>() as u64,
            waiting: waiting.count() as u64,
            ..table.counts.clone()
        }
    }

    /// Starts a staging, or says how far it is.
    ///
    /// # Errors
    /// If the directory is missing, or no thread can be started.
    pub(crate) fn stage(
        &self,
        place: &PoolAllocation,
        staging: Staging,
        attempt: String,
    ) -> Result<Outcome, Error> {
        let kind = match staging.direction {
            Direction::In => Kind::StageIn,
            Direction::Out => Kind::StageOut,
        };
        if let Some(known) = self.known(place, kind, &attempt) {
            return Ok(known);
        }
        let work = self.shared.staging_work(place, staging)?;
        self.start(place, kind, attempt, move |shared, place| shared.repeat(place, &work))
    }

    /// Starts the engine of an allocation, or says how far it is.
    ///
    /// # Errors
    /// If the directory is missing, or no thread can be started.
    pub(crate) fn start_engine(
        &self,
        place: &PoolAllocation,
        nodes: Vec<(String, u16)>,
        (capacity_bytes, redundancy): (u64, u32),
        attempt: String,
    ) -> Result<Outcome, Error> {
        if let Some(known) = self.known(place, Kind::Start, &attempt) {
            return Ok(known);
        }
        let engine = place.engine.clone();
        let wanted = EngineSpec {
            directory: self.shared.directory(place)?,
            name: place.name.clone(),
            engine: engine.ok_or_else(|| Error::new("the allocation has no engine"))?,
            nodes,
            capacity_bytes,
            redundancy,
            namespace: place.access.directory().to_owned(),
            hang_s_max: forebay_cluster::hang_s_max(),
        };
        self.start(place, Kind::Start, attempt, move |shared, place| {
            let should_continue = || !is_cancelled(&shared.table.lock(), &place.name);
            shared.engines.start(place, &wanted, &should_continue)
        })
    }

    /// Starts a removal, or says how far it is. A staging of the allocation ends.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(crate) fn remove(
        &self,
        place: &PoolAllocation,
        is_made: bool,
        attempt: String,
    ) -> Result<Outcome, Error> {
        if let Some(known) = self.known(place, Kind::Remove, &attempt) {
            return Ok(known);
        }
        self.start(place, Kind::Remove, attempt, move |shared, place| shared.remove(place, is_made))
    }

    /// The state of a task for this attempt; none if it is to be started.
    fn known(&self, place: &PoolAllocation, kind: Kind, attempt: &String) -> Option<Outcome> {
        let mut table = self.shared.table.lock();
        if kind != Kind::Remove && table.removed.contains(&place.name) {
            let reason = format!("{} was removed", place.name);
            return Some(Outcome::Failed { reason, is_final: true });
        }
        let task = table.tasks.get_mut(&place.name)?;
        match (&task.state, task.kind == kind) {
            (State::Ended(outcome, _), true) => {
                task.attempts.contains(attempt).then(|| outcome.clone())
            }
            (State::Ended(..), false) => None,
            (_, true) => {
                if !task.attempts.contains(attempt) {
                    task.attempts.push_back(attempt.clone());
                }
                if task.attempts.len() > ATTEMPTS_MAX {
                    task.attempts.pop_front();
                }
                Some(Outcome::Running { progress: task.state.progress() })
            }
            (_, false) if kind == Kind::Remove => {
                task.is_cancelled = true;
                if let State::Running(killer, _) = &task.state {
                    killer.kill();
                }
                self.shared.changed.notify_all();
                Some(running()) // the next request finds it ended
            }
            (_, false) => {
                let what = match task.kind {
                    Kind::Start => "started",
                    Kind::StageIn | Kind::StageOut => "staged",
                    Kind::Remove => "removed",
                };
                let reason = format!("{} is being {what}", place.name);
                Some(Outcome::Failed { reason, is_final: true })
            }
        }
    }

    fn start(
        &self,
        place: &PoolAllocation,
        kind: Kind,
        attempt: String,
        run: impl FnOnce(&Shared, &PoolAllocation) -> Result<Outcome, Error> + Send + 'static,
    ) -> Result<Outcome, Error> {
        let mut table = self.shared.table.lock();
        let kept = if table.tasks.len() < KNOWN_MAX { KEPT } else { KEPT_IF_FULL };
        let is_old =
            |task: &Task| matches!(&task.state, State::Ended(_, at) if at.elapsed() > kept);
        table.tasks.retain(|_, task| !is_old(task));
        let is_active = |task: &Task| !matches!(task.state, State::Ended(..));
        if table.tasks.get(&place.name).is_some_and(is_active) {
            return Ok(running()); // another request was faster
        }
        if table.creating.contains_key(&place.name) {
            return Ok(running()); // the request comes again
        }
        if table.tasks.len() >= KNOWN_MAX {
            return Ok(running()); // full: the request comes again
        }
        let attempts = VecDeque::from([attempt]);
        let task = Task { kind, state: State::Waiting, attempts, is_cancelled: false };
        table.tasks.insert(place.name.clone(), task);
        drop(table);
        let (shared, place) = (Arc::clone(&self.shared), place.clone());
        let name = place.name.clone();
        let started = threads::spawn(move || {
            let outcome = shared.in_turn(&place, run);
            shared.end(&place.name, outcome);
        });
        if let Err(error) = started {
            self.shared.table.lock().tasks.remove(&name);
            return Err(error.into());
        }
        Ok(running())
    }
}

impl Shared {
    /// Runs a task when it is its turn.
    fn in_turn(
        &self,
        place: &PoolAllocation,
        run: impl FnOnce(&Self, &PoolAllocation) -> Result<Outcome, Error>,
    ) -> Outcome {
        let mut table = self.table.lock();
        while !table.has_room_for(place.user) && !is_cancelled(&table, &place.name) {
            self.changed.wait(&mut table);
        }
        *table.running.entry(place.user).or_default() += 1;
        drop(table);
        // A panic has printed its message. It must not keep a place for ever.
        let outcome = threads::caught(|| run(self, place));
        self.table.lock().end_one_of(place.user);
        self.changed.notify_all();
        match outcome {
            Some(Ok(outcome)) => outcome,
            Some(Err(error)) => Outcome::Failed { reason: error.to_string(), is_final: false },
            None => {
                let reason = "forebay-noded has a defect: its log has the message".to_owned();
                Outcome::Failed { reason, is_final: false }
            }
        }
    }

    fn end(&self, name: &str, outcome: Outcome) {
        let mut table = self.table.lock();
        let kind = table.tasks.get(name).map(|task| task.kind);
        if let Some(kind) = kind {
            count(&mut table.counts, kind, &outcome);
        }
        if let Some(task) = table.tasks.get_mut(name) {
            task.state = State::Ended(outcome, clock::now());
        }
        self.changed.notify_all();
    }

    fn staging_work(&self, place: &PoolAllocation, wanted: Staging) -> Result<Work, Error> {
        let directory = self.directory(place)?;
        if wanted.direction == Direction::Out {
            let pool = PoolDirectory::open(&self.site, &place.pool, &place.path)?;
            pool.limit(place, wanted.capacity_bytes, true)?;
        }
        let persistent = wanted.persistent.iter();
        let persistent = persistent.map(|(name, place)| Ok((name.clone(), self.directory(place)?)));
        let persistent = persistent.collect::<Result<_, Error>>()?;
        let bytes_per_s_max = self.site.pool(&place.pool)?.stage_bytes_per_s_max;
        let (namespace, has_engine) = (place.namespace(), place.engine.is_some());
        let (access, tag) = (place.access, self.tag_of(place));
        let own = OwnNamespace { directory, namespace, has_engine, access, tag };
        Ok(Work::Stage { own, persistent, wanted, bytes_per_s_max })
    }

    /// Nodes that stage out of one allocation may do so into the same directory.
    fn tag_of(&self, place: &PoolAllocation) -> String {
        match place.access {
            AccessMode::Striped => place.name.clone(),
            AccessMode::Private => format!("{}.{}", place.name, self.node),
        }
    }

    /// The path of an allocation that exists and is its owner's.
    fn directory(&self, place: &PoolAllocation) -> Result<PathBuf, Error> {
        PoolDirectory::open(&self.site, &place.pool, &place.path)?.check(place)?;
        Ok(place.directory())
    }

    /// Does the work in a process of the owner. A process that is killed or stopped is started again: the owner's
    /// processes may be ended by an epilog of the site.
    fn repeat(&self, place: &PoolAllocation, work: &Work) -> Result<Outcome, Error> {
        let mut pause = PAUSE_MIN;
        let mut interruptions = 0;
        loop {
            let process = self.owners.start(place, work)?;
            let idle_max = self.site.stage_idle_max;
            let limit = TimeLimit::Work { idle_max, stopped_max: STOPPED_MAX };
            if !self.set_running(&place.name, process.killer(), process.counters()) {
                process.killer().kill();
                process.finish(limit)?;
                return Ok(cancelled());
            }
            let (reason, by_us) = match process.finish(limit)? {
                WorkResult::Reported(outcome) => return Ok(outcome),
                WorkResult::Interrupted { reason, by_us } => (reason, by_us),
                WorkResult::Late(reason) => {
                    self.table.lock().counts.idle += 1;
                    return Ok(Outcome::Failed {
                        reason: owner::stopped(&reason),
                        is_final: false,
                    });
                }
            };
            if !self.table.lock().count_interruption(&place.name, by_us) {
                return Ok(cancelled());
            }
            interruptions += 1;
            if interruptions == INTERRUPTIONS_MAX {
                let (user, node) = (users::user_named(place.user), &self.node);
                let reason = format!(
                    "{reason} on {node}, {interruptions} times; {user} must leave the processes {NAME} there alone, \
                     and so must an epilog of the site"
                );
                return Ok(Outcome::Failed { reason, is_final: false });
            }
            let mut table = self.table.lock();
            let deadline = clock::now() + pause;
            while !is_cancelled(&table, &place.name)
                && !self.changed.wait_until(&mut table, deadline).timed_out()
            {}
            if is_cancelled(&table, &place.name) {
                return Ok(cancelled());
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// False if the task was cancelled.
    fn set_running(&self, name: &str, killer: Killer, counters: Arc<Counters>) -> bool {
        let mut table = self.table.lock();
        match table.tasks.get_mut(name) {
            Some(task) if !task.is_cancelled => {
                task.state = State::Running(killer, counters);
                true
            }
            _ => false,
        }
    }

    /// Removes the content as the owner, then the empty directory as root. What members of a group left, root removes.
    fn remove(&self, place: &PoolAllocation, is_made: bool) -> Result<Outcome, Error> {
        let pool = PoolDirectory::open(&self.site, &place.pool, &place.path)?;
        if place.engine.is_some() {
            self.engines.begin_removal(&place.name)?;
        }
        let outcome = match pool.owner_of(&place.name)? {
            // Without the file system of the pool, the directory would seem to be gone.
            None if is_made && !pool.is_marked()? => return Err(pool.missing_mark_error()),
            None => Outcome::Done { files: 0, bytes: 0, note: None },
            // Root had no time to give it away, so it is empty; or root took it, to empty it.
            Some(0) => emptied_by_root(&pool, place)?,
            Some(owner) if owner != place.user => {
                return Err(belongs_to_another(&place.directory(), owner));
            }
            Some(_) => {
                let (directory, tag) = (place.directory(), self.tag_of(place));
                match self.repeat(place, &Work::Empty { directory, tag })? {
                    // What the servers of an engine kept is not what the job wrote.
                    Outcome::Done { files, note, .. } if place.engine.is_some() => {
                        Outcome::Done { files, bytes: 0, note }
                    }
                    Outcome::Failed { .. } if place.is_shared => emptied_by_root(&pool, place)?,
                    outcome => outcome,
                }
            }
        };
        if matches!(outcome, Outcome::Done { .. }) {
            pool.remove(&place.name)?;
            self.engines.end_removal(&place.name);
            self.note_removed(&place.name);
        }
        Ok(outcome)
    }

    fn note_removed(&self, name: &str) {
        let mut table = self.table.lock();
        if table.removed.insert(name.to_owned()) {
            table.removed_in_order.push_back(name.to_owned());
        }
        let is_full = table.removed_in_order.len() > REMOVED_MAX;
        let oldest = if is_full { table.removed_in_order.pop_front() } else { None };
        if let Some(oldest) = oldest {
            table.removed.remove(&oldest);
        }
    }
}

fn emptied_by_root(pool: &PoolDirectory, place: &PoolAllocation) -> Result<Outcome, Error> {
    pool.empty(&place.name)?;
    Ok(Outcome::Done { files: 0, bytes: 0, note: None })
}

fn running() -> Outcome {
    Outcome::Running { progress: Progress::default() }
}

fn cancelled() -> Outcome {
    Outcome::Failed { reason: "it was cancelled".to_owned(), is_final: true }
}

#[cfg(test)]
mod tests {
    use forebay_host::users::Account;

    use super::*;
    use crate::task_table::RUNNING_OF_USER_MAX;

    fn site() -> Site {
        let name = "nobody".to_owned();
        Site {
            file: PathBuf::new(),
            slurm_user: Account { user: 65534, name, group: 65534, groups: Vec::new() },
            state: PathBuf::new(),
            munge_socket: None,
            secret: None,
            node_port: 1,
            checks_nodes: false,
            stage_out_retry: Duration::ZERO,
            node_wait: Duration::ZERO,
            start_wait: Duration::ZERO,
            stage_idle_max: Duration::ZERO,
            pools: Vec::new(),
        }
    }

    fn place() -> PoolAllocation {
        PoolAllocation {
            pool: "flash".to_owned(),
            path: "/p".to_owned(),
            name: "1.1".to_owned(),
            user: 7,
            group: 7,
            is_shared: false,
            access: AccessMode::Striped,
            engine: None,
        }
    }

    fn tasks(node: &str) -> Tasks {
        let (site, owners) = (site(), Arc::new(Owners::without_cgroups()));
        let engines = Engines::of(&site, node, false, |_| {}).expect("none is needed");
        Tasks::of(site, node.to_owned(), owners, Arc::new(engines))
    }

    #[test]
    fn staging_is_refused_with_the_task_that_runs() {
        let text = |word: &str| word.to_owned();
        let place = place();
        for (kind, wanted) in
            [(Kind::StageIn, "1.1 is being staged"), (Kind::Remove, "1.1 is being removed")]
        {
            let tasks = tasks("");
            let attempts = VecDeque::new();
            let task = Task { kind, state: State::Waiting, attempts, is_cancelled: false };
            tasks.shared.table.lock().tasks.insert(place.name.clone(), task);
            let refused = Outcome::Failed { reason: text(wanted), is_final: true };
            assert_eq!(tasks.known(&place, Kind::StageOut, &text("x")), Some(refused));
        }
    }

    #[test]
    fn allocation_is_not_made_and_removed_at_the_same_time() {
        let text = |word: &str| word.to_owned();
        let place = place();
        let tasks = tasks("n1");
        let creating = ["first", "second"].map(|_| tasks.begin_to_create("1.1").expect("new"));
        for one in creating {
            assert_eq!(tasks.remove(&place, true, text("x")), Ok(running()));
            assert!(tasks.shared.table.lock().tasks.is_empty(), "it waits");
            drop(one);
        }
        assert!(tasks.shared.table.lock().creating.is_empty());
        assert_eq!(tasks.remove(&place, true, text("x")), Ok(running()));
        assert_eq!(tasks.shared.table.lock().tasks.len(), 1);
        tasks.shared.note_removed("1.1");
        assert!(tasks.begin_to_create("1.1").is_err() && tasks.begin_to_create("1.2").is_ok());
    }

    #[test]
    fn process_of_a_cancelled_staging_is_not_counted_as_interrupted() {
        let mut table = Table::default();
        let attempts = VecDeque::new();
        let task =
            Task { kind: Kind::StageOut, state: State::Waiting, attempts, is_cancelled: false };
        table.tasks.insert("1.1".to_owned(), task);
        assert!(table.count_interruption("1.1", false) && table.count_interruption("1.1", true));
        table.tasks.get_mut("1.1").expect("known").is_cancelled = true;
        assert!(!table.count_interruption("1.1", false) && !table.count_interruption("1.1", true));
        assert_eq!((table.counts.interruptions, table.counts.idle), (1, 1));
    }

    #[test]
    fn one_user_never_has_all_places() {
        let mut table = Table::default();
        for user in 1..=5 {
            let mut taken = 0;
            while table.has_room_for(user) {
                *table.running.entry(user).or_default() += 1;
                taken += 1;
            }
            assert_eq!(taken, if user < 5 { RUNNING_OF_USER_MAX } else { 0 });
        }
        table.end_one_of(2);
        assert!(table.has_room_for(2) && table.has_room_for(5) && !table.has_room_for(1));
    }
}
