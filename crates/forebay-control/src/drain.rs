//! Draining while the job computes: each version of a file that its last writer has closed goes at once to
//! where stage-out would bring it, or to a directory of its own. What has arrived unchanged is not copied
//! again at stage-out; what has not, stage-out copies. So nothing that goes wrong here loses anything.
//!
//! One thread hears of closed files (`forebay_host::closes`), some copy and yield to all others, one answers
//! the job's own processes (`door`).

mod copying;
mod door;
mod queue;
mod report;
mod rules;
mod speed;
mod wish;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use forebay_directive::Stage;
use forebay_engine::Space;
use forebay_host::clock;
use forebay_host::closes::{Bell, Closes, Told};
use forebay_host::door::Door;
use forebay_host::priority;
use forebay_host::process::Stops;
use forebay_mover::{Journal, Verify};

use crate::context::JobContext as Life;
use crate::{Error, Messages};
use copying::{Coarse, Copying, finish_directories};
use forebay_record::{DrainTo, DrainedInto, JobDirectory, Recorded, tag};
use queue::{Copied, Item, Queue};
use rules::{Rule, Rules};
use speed::Speed;

use door::DOOR;
pub use door::{Question, ask};
pub use queue::DrainStatus;
pub use report::Drained;
pub(crate) use rules::not_in_burst_buffer;
pub(crate) use wish::check;
pub use wish::{DrainWish, Spectral};

/// The text of `--drain`, where no option says it: directives have no room for it.
pub const DRAIN_VARIABLE: &str = "FOREBAY_DRAIN";

/// Threads that copy, while the job computes and at its end.
const WORKERS: usize = 4;

/// What is drained of one job.
pub(crate) struct Drain<'a> {
    watcher: &'a dyn Messages,
    /// The script's stage_out lines.
    stages: &'a [Stage],
    /// Directories of the namespaces.
    roots: Vec<PathBuf>,
    verify: Verify,
    /// The job's own.
    directory: &'a JobDirectory,
    stops: Stops,
    rules: Mutex<Rules>,
    queue: Mutex<Queue>,
    changed: Condvar,
    coarse: Mutex<Vec<Coarse>>,
    speed: Mutex<Speed>,
    /// Held while directories are made at a destination.
    making: Mutex<()>,
    began: Instant,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Drain<'a> {
    /// What the job's order asks for; none if it is nothing.
    ///
    /// # Errors
    /// If it cannot be done.
    pub(crate) fn of(
        life: &'a Life,
        space: &'a Space,
        stops: Stops,
    ) -> Result<Option<Self>, Error> {
        let rules = Rules::of(life, space)?;
        if rules.are_none() {
            return Ok(None);
        }
        rules.explain(life.watcher);
        Ok(Some(Self {
            watcher: life.watcher,
            stages: &life.request.stage_out,
            roots: space.roots(&life.request),
            verify: life.order.staging.verify_without_journal(),
            directory: life.directory,
            stops,
            queue: Mutex::new(Queue::of(rules.are_newest())),
            rules: Mutex::new(rules),
            changed: Condvar::new(),
            coarse: Mutex::default(),
            speed: Mutex::default(),
            making: Mutex::default(),
            began: clock::now(),
        }))
    }

    /// What goes to directories that no stage_out line names.
    pub(crate) fn elsewhere(&self) -> Vec<DrainTo> {
        locked(&self.rules).elsewhere()
    }

    /// Drains as long as the job runs. What is being copied at its end is copied to the end, unless we are asked
    /// to stop: then there may be no time for it, and stage-out first names what is not safe.
    ///
    /// # Errors
    /// The job's own; or nothing can be watched, and the job was not begun.
    pub(crate) fn around<T>(
        &self,
        recorded: &mut Recorded,
        job: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let roots: Vec<&Path> = self.roots.iter().map(PathBuf::as_path).collect();
        let closes = Closes::watch(&roots).map_err(|error| Error::Drain {
            message: format!("drain: {error}"),
            hint: "see fs.inotify in sysctl: max_user_watches, max_user_instances",
        })?;
        let bell = closes.bell();
        let door = Door::open(&self.directory.path().join(DOOR))?;
        let into = DrainedInto::of(recorded);
        let recorded = Mutex::new(recorded);
        let answer = |question: &str| self.answer(question, &bell, &recorded);
        std::thread::scope(|scope| {
            scope.spawn(|| self.listen(closes));
            let into = &into;
            let copy = |number| scope.spawn(move || self.copy(number, into));
            let copies: Vec<_> = (0..WORKERS).map(copy).collect();
            scope.spawn(|| door.serve(&answer));
            let ended = job();
            // The job's processes are no more, so this is all that they have closed.
            self.catch_up(&bell);
            locked(&self.queue).over = true;
            self.changed.notify_all();
            for copy in copies {
                copy.join().ok(); // it has no result
            }
            bell.stop().ok(); // the watch may have ended by itself
            door.shut();
            ended
        })
    }

    /// Waits until all that was closed by now is in the queue. Returns the number of what comes next.
    fn catch_up(&self, bell: &Bell) -> u64 {
        let ticket = bell.ask().unwrap_or_else(|error| {
            self.all_unseen(&error);
            0
        });
        let behind = |queue: &mut Queue| queue.caught_up < ticket && !queue.over;
        self.wait_while(behind).number()
    }

    fn wait_while(&self, condition: impl FnMut(&mut Queue) -> bool) -> MutexGuard<'_, Queue> {
        let queue = locked(&self.queue);
        let waited = self.changed.wait_while(queue, condition);
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing more is told of any directory.
    fn all_unseen(&self, error: &forebay_host::Error) {
        let mut queue = locked(&self.queue);
        self.roots.iter().for_each(|root| queue.unseen(root, error));
    }

    fn listen(&self, mut closes: Closes) {
        let watcher = self.watcher;
        let mut is_unseen_told = false;
        loop {
            match closes.wait() {
                Ok(Told::Closed(closed)) => {
                    let items = locked(&self.rules).items(&closed);
                    for item in items {
                        self.add(item);
                    }
                }
                Ok(Told::CaughtUp(ticket)) => locked(&self.queue).caught_up = ticket,
                Ok(Told::Unseen(error)) => {
                    if !std::mem::replace(&mut is_unseen_told, true) {
                        watcher.warning(&format!("drain: {error}: its files wait for stage-out"));
                    }
                    locked(&self.queue).unseen(&error.path, &error);
                }
                Ok(Told::NoLease(error)) => watcher.explain(&format!(
                    "drain: {error}: a file counts as closed when one of its writers has closed it"
                )),
                Ok(Told::End) => break,
                Err(error) => {
                    watcher.warning(&format!("drain: {error}: the rest waits for stage-out"));
                    self.all_unseen(&error);
                    break;
                }
            }
            self.changed.notify_all();
        }
        locked(&self.queue).caught_up = u64::MAX;
        self.changed.notify_all();
    }

    /// A version was closed that a rule means.
    fn add(&self, item: Item) {
        let rule = locked(&self.rules).rule(item.rule);
        if rule.ways(&item.closed.path, self.stages).is_empty() {
            return locked(&self.queue).pass(&item.closed.path);
        }
        self.log(item.rule, "ENQUEUE", &item);
        locked(&self.queue).add(item);
    }

    /// One of the threads that copy. Several do, since one alone has one target of a file system at a time
    /// where files are not striped, and waits for a sync after each small file.
    fn copy(&self, number: usize, into: &DrainedInto) {
        if let Err(error) = priority::yield_to_others() {
            self.watcher.explain(&format!("drain: {error}"));
        }
        while let Some(item) = self.take() {
            self.log(item.rule, "DEQUEUE", &item);
            let rule = locked(&self.rules).rule(item.rule);
            let mut made = Vec::new();
            let copied = self.copy_one((number, into), &item, &rule, &mut made);
            if matches!(copied, Copied::Done) {
                self.log(item.rule, "DONE", &item);
            }
            let mut queue = locked(&self.queue);
            queue.made.append(&mut made);
            queue.put_down(&item, copied, clock::now());
            drop(queue);
            self.changed.notify_all();
        }
    }

    /// The next version, as soon as there is one; none when the job is over.
    fn take(&self) -> Option<Item> {
        let mut taken = None;
        drop(self.wait_while(|queue| {
            if !queue.over {
                taken = queue.take();
            }
            !queue.over && taken.is_none()
        }));
        taken
    }

    fn copy_one(
        &self,
        (number, into): (usize, &DrainedInto),
        item: &Item,
        rule: &Rule,
        made: &mut Vec<queue::Made>,
    ) -> Copied {
        let yields = AtomicBool::new(true);
        // Called by the thread that copies, which is none of ours: a class is its own.
        let on_bytes = |bytes: u64| {
            if locked(&self.queue).over {
                if yields.swap(false, Ordering::Relaxed) {
                    priority::want_disk_as_others().ok(); // it is copied all the same
                }
            } else if let Some(rate) = rule.rate_bytes_per_s {
                self.pause(item.rule, bytes, rate);
            }
        };
        let cancelled = || self.stops.count() > 0 && locked(&self.queue).over;
        let copying = Copying {
            into: (into, self.watcher),
            coarse: &self.coarse,
            making: &self.making,
            tag: tag(self.directory.id(), number),
            verify: self.verify,
            speed: rule.rate_bytes_per_s.is_none().then_some(&self.speed),
            on_bytes: &on_bytes,
            cancelled: &cancelled,
        };
        let ways = rule.ways(&item.closed.path, self.stages);
        copying.copy(item, ways, made)
    }

    /// After the job nobody is there to be yielded to: the copy in hand goes on without a pause.
    fn pause(&self, rule: usize, bytes: u64, bytes_per_s: u64) {
        let mut queue = locked(&self.queue);
        let until = queue.pace(rule).after(bytes, bytes_per_s, clock::now());
        loop {
            let left = until.saturating_duration_since(clock::now());
            if left.is_zero() || queue.over {
                return;
            }
            let waited = self.changed.wait_timeout(queue, left);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// How fast it goes where no rate holds it back; none as long as too little was copied to tell.
    pub(crate) fn bytes_per_s(&self) -> Option<f64> {
        locked(&self.speed).bytes_per_s(clock::now())
    }

    /// Tells the journal of the stage-out what has arrived although it does not look so. Returns how many
    /// files that are.
    pub(crate) fn tell_coarse(&self, journal: &Journal) -> u64 {
        let mut told = 0;
        for coarse in &*locked(&self.coarse) {
            match coarse.tell(journal) {
                Ok(stands) => told += u64::from(stands),
                Err(error) => self.watcher.explain(&error.to_string()), // it is copied again
            }
        }
        told
    }

    /// After stage-out, with its journal if there was one: what was left to it is done if it stands at its place now.
    pub(crate) fn finish(&self, journal: Option<&Journal>) {
        if let Err(error) = finish_directories(&mut locked(&self.queue).made) {
            self.watcher.warning(&error.to_string());
        }
        let Some(journal) = journal else {
            return;
        };
        for item in locked(&self.queue).left() {
            match self.is_placed(item, journal) {
                Ok(true) => self.log(item.rule, "DONE", item),
                Ok(false) => {}
                Err(error) => return self.watcher.warning(&error.to_string()),
            }
        }
    }

    /// Has stage-out brought it to where its log says?
    fn is_placed(&self, item: &Item, journal: &Journal) -> Result<bool, forebay_mover::Error> {
        let rule = locked(&self.rules).rule(item.rule);
        for way in rule.ways(&item.closed.path, self.stages) {
            if !rule.is_logged() || !journal.is_placed(&way.target)? {
                return Ok(false);
            }
        }
        Ok(rule.is_logged())
    }

    fn log(&self, rule: usize, state: &str, item: &Item) {
        let rules = locked(&self.rules);
        if let Err(error) = rules.log(rule, state, &item.closed.path) {
            self.watcher.explain(&error.to_string());
        }
    }
}
