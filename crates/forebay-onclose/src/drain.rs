//! Draining while the job computes: each version of a file that its last writer has closed goes at once to
//! where stage-out would bring it, or to a directory of its own. What has arrived unchanged is not copied
//! again at stage-out; what has not, stage-out copies. So nothing that goes wrong here loses anything.
//!
//! One thread receives closed files (`forebay_host::close_watch`), some copy and yield to all others, one answers
//! the job's own processes (`control`).

mod control;
mod copying;
mod queue;
mod report;
mod rules;
mod spec;
mod speed;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use forebay_directive::{Request, Stage};
use forebay_host::clock;
use forebay_host::close_watch::{CloseEvent, CloseWatcher, WatchHandle};
use forebay_host::messages::Messages;
use forebay_host::priority;
use forebay_host::process::StopRequests;
use forebay_mover::{Journal, Verify};
use forebay_store::Allocation;
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::Error;
use crate::versions::Version;
use control::Control;
use copying::{Copying, ImpreciseCopy, finish_directories};
use forebay_record::{DrainTarget, RecordFile, TargetLog, tag};
use forebay_staging::Staged;
use queue::{Copied, Queue};
use rules::{Rule, Rules};
use speed::Speed;

pub use control::{ControlRequest, query_drain};
pub use queue::DrainStatus;
pub use report::Drained;
pub use rules::not_in_burst_buffer;
pub use spec::check;
pub use spec::{DrainSpec, Spectral};

/// The text of `--drain`, where no option says it: directives have no room for it.
pub const DRAIN_VARIABLE: &str = "FOREBAY_DRAIN";

/// Threads that copy, while the job computes and at its end.
const WORKERS: usize = 4;

/// What a drain must know of its job.
pub struct Job<'a> {
    /// Identifies it.
    pub id: &'a str,
    /// Its own directory, which gets the socket.
    pub directory: &'a Path,
    /// What its script asks for.
    pub request: &'a Request,
    /// Its allocation.
    pub allocation: &'a Allocation,
    /// Directories of the namespaces.
    pub roots: Vec<PathBuf>,
    /// Where the job also sees the private namespace.
    pub node_local: Option<PathBuf>,
    /// What is drained.
    pub specs: &'a [DrainSpec],
    /// What is drained Spectral's way.
    pub spectral: &'a Spectral,
    /// When copies are compared with their sources.
    pub verify: Verify,
    /// Prints messages.
    pub messages: &'a dyn Messages,
}

/// The drain of one job.
pub struct Drain<'a> {
    job: Job<'a>,
    stops: StopRequests,
    rules: Mutex<Rules>,
    queue: Mutex<Queue>,
    queue_changed: Condvar,
    imprecise: Mutex<Vec<ImpreciseCopy>>,
    speed: Mutex<Speed>,
    /// Held while directories are made at a destination.
    mkdir_lock: Mutex<()>,
    began: Instant,
}

impl<'a> Drain<'a> {
    /// The drain that the job asks for; none if it asks for nothing.
    ///
    /// # Errors
    /// If it cannot be done.
    pub fn new(job: Job<'a>, stops: StopRequests) -> Result<Option<Self>, Error> {
        let rules = Rules::new(&job)?;
        if rules.is_empty() {
            return Ok(None);
        }
        rules.explain(job.messages);
        Ok(Some(Self {
            job,
            stops,
            queue: Mutex::new(Queue::new(rules.newest_flags())),
            rules: Mutex::new(rules),
            queue_changed: Condvar::new(),
            imprecise: Mutex::default(),
            speed: Mutex::default(),
            mkdir_lock: Mutex::default(),
            began: clock::now(),
        }))
    }

    /// What goes to directories that no stage_out line names.
    pub fn elsewhere(&self) -> Vec<DrainTarget> {
        self.rules.lock().elsewhere()
    }

    /// Drains as long as the job runs. What is being copied at its end is copied to the end, unless we are asked
    /// to stop: then there may be no time for it, and stage-out first names what is not safe.
    ///
    /// # Errors
    /// The job's own; or nothing can be watched, and the job was not begun.
    pub fn run_with<T, E: From<Error>>(
        &self,
        recorded: &mut RecordFile,
        job: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let roots: Vec<&Path> = self.job.roots.iter().map(PathBuf::as_path).collect();
        let closes = CloseWatcher::watch(&roots).map_err(|error| Error::Request {
            message: format!("drain: {error}"),
            hint: "see fs.inotify in sysctl: max_user_watches, max_user_instances",
        })?;
        let bell = closes.bell();
        let control = Control::listen(self.job.directory).map_err(Error::from)?;
        let target_log = TargetLog::of(recorded);
        let recorded = Mutex::new(recorded);
        let handle = |request| self.handle(request, &bell, &recorded);
        std::thread::scope(|scope| {
            scope.spawn(|| self.listen(closes));
            let target_log = &target_log;
            let copy = |number| scope.spawn(move || self.copy(number, target_log));
            let copies: Vec<_> = (0..WORKERS).map(copy).collect();
            scope.spawn(|| control.serve(&handle));
            let ended = job();
            // The job's processes are no more, so this is all that they have closed.
            self.wait_for_events(&bell);
            self.queue.lock().job_ended = true;
            self.queue_changed.notify_all();
            for copy in copies {
                copy.join().ok(); // it has no result
            }
            bell.stop().ok(); // the watch may have ended by itself
            control.close();
            ended
        })
    }

    /// Carries out what one of the job's processes asks. Returns the status after it, and what went wrong.
    fn handle(
        &self,
        request: ControlRequest,
        bell: &WatchHandle,
        recorded: &Mutex<&mut RecordFile>,
    ) -> (DrainStatus, Option<String>) {
        let done = match request {
            ControlRequest::Status => Ok(()),
            ControlRequest::Wait => {
                let number = self.wait_for_events(bell);
                drop(self.wait_while(|queue| !queue.is_done_before(number) && !queue.job_ended));
                Ok(())
            }
            ControlRequest::Spectral { persist, pfs } => {
                self.add_spectral_rule(&persist, &pfs, recorded)
            }
        };
        let error = done.err().map(|error| error.to_string());
        (self.queue.lock().status(), error)
    }

    /// What is to be drained is recorded first, so that it is not forgotten when we are killed.
    fn add_spectral_rule(
        &self,
        persist: &str,
        pfs: &str,
        recorded: &Mutex<&mut RecordFile>,
    ) -> Result<(), Error> {
        let mut rules = self.rules.lock();
        let Some((rule, added)) = rules.add_spectral(persist.as_ref(), pfs.as_ref())? else {
            return Ok(());
        };
        let elsewhere = rules.elsewhere();
        recorded.lock().update(|record| record.drain_to = elsewhere)?;
        drop(rules);
        let (closed, unwatched) = added.scan_closed();
        for error in unwatched {
            self.queue.lock().mark_unwatched(&error.path, &error);
        }
        for closed in closed {
            self.add(Version { rule, closed });
        }
        self.queue_changed.notify_all();
        Ok(())
    }

    /// Waits until all that was closed by now is in the queue. Returns the number of what comes next.
    fn wait_for_events(&self, bell: &WatchHandle) -> u64 {
        let ticket = bell.request_ticket().unwrap_or_else(|error| {
            self.mark_all_unwatched(&error);
            0
        });
        let behind = |queue: &mut Queue| queue.synced_to < ticket && !queue.job_ended;
        self.wait_while(behind).number()
    }

    fn wait_while(&self, condition: impl FnMut(&mut Queue) -> bool) -> MutexGuard<'_, Queue> {
        let mut queue = self.queue.lock();
        self.queue_changed.wait_while(&mut queue, condition);
        queue
    }

    /// No directory is watched any more.
    fn mark_all_unwatched(&self, error: &forebay_host::Error) {
        let mut queue = self.queue.lock();
        for root in &self.job.roots {
            queue.mark_unwatched(root, error);
        }
    }

    fn listen(&self, mut closes: CloseWatcher) {
        let messages = self.job.messages;
        let mut is_unwatched_reported = false;
        loop {
            match closes.wait() {
                Ok(CloseEvent::Closed(closed)) => {
                    let versions = self.rules.lock().versions(&closed);
                    for version in versions {
                        self.add(version);
                    }
                }
                Ok(CloseEvent::Drained(ticket)) => self.queue.lock().synced_to = ticket,
                Ok(CloseEvent::Unseen(error)) => {
                    if !std::mem::replace(&mut is_unwatched_reported, true) {
                        messages.warning(&format!("drain: {error}: its files wait for stage-out"));
                    }
                    self.queue.lock().mark_unwatched(&error.path, &error);
                }
                Ok(CloseEvent::NoLease(error)) => messages.explain(&format!(
                    "drain: {error}: a file counts as closed when one of its writers has closed it"
                )),
                Ok(CloseEvent::End) => break,
                Err(error) => {
                    messages.warning(&format!("drain: {error}: the rest waits for stage-out"));
                    self.mark_all_unwatched(&error);
                    break;
                }
            }
            self.queue_changed.notify_all();
        }
        self.queue.lock().synced_to = u64::MAX;
        self.queue_changed.notify_all();
    }

    /// Queues a version that matches a rule.
    fn add(&self, version: Version) {
        let (rule, path) = (self.rule(&version), &version.closed.path);
        if rule.ways(path, self.stages()).is_empty() {
            return self.queue.lock().count_unmatched(path);
        }
        self.log("ENQUEUE", &version);
        self.queue.lock().add(version);
    }

    /// One of the threads that copy. Several do, since one alone has one target of a file system at a time
    /// where files are not striped, and waits for a sync after each small file.
    fn copy(&self, number: usize, target_log: &TargetLog) {
        if let Err(error) = priority::lower_priority() {
            self.job.messages.explain(&format!("drain: {error}"));
        }
        while let Some(version) = self.take() {
            self.log("DEQUEUE", &version);
            let mut made = Vec::new();
            let copied = self.copy_one((number, target_log), &version, &mut made);
            if matches!(copied, Copied::Done) {
                self.log("DONE", &version);
            }
            let mut queue = self.queue.lock();
            queue.made.append(&mut made);
            queue.complete(&version, copied, clock::now());
            drop(queue);
            self.queue_changed.notify_all();
        }
    }

    /// The next version, as soon as there is one; none when the job has ended.
    fn take(&self) -> Option<Version> {
        let mut taken = None;
        drop(self.wait_while(|queue| {
            if !queue.job_ended {
                taken = queue.take();
            }
            !queue.job_ended && taken.is_none()
        }));
        taken
    }

    fn copy_one(
        &self,
        (number, target_log): (usize, &TargetLog),
        version: &Version,
        made: &mut Vec<queue::Made>,
    ) -> Copied {
        let rule = self.rule(version);
        let has_ended = || self.queue.lock().job_ended;
        let yields = AtomicBool::new(true);
        // Called by the thread that copies, which is none of ours: a class is its own.
        let on_bytes = |bytes: u64| {
            if has_ended() {
                if yields.swap(false, Ordering::Relaxed) {
                    priority::set_default_io_class().ok(); // it is copied all the same
                }
            } else if let Some((_, limit)) = &rule.rate {
                limit.wait(bytes, has_ended); // then nobody is there to be yielded to
            }
        };
        let cancelled = || self.stops.count() > 0 && has_ended();
        let copying = Copying {
            target_log: (target_log, self.job.messages),
            imprecise: &self.imprecise,
            mkdir_lock: &self.mkdir_lock,
            tag: tag(self.job.id, number),
            verify: self.job.verify,
            speed: rule.rate.is_none().then_some(&self.speed),
            on_bytes: &on_bytes,
            cancelled: &cancelled,
        };
        let ways = rule.ways(&version.closed.path, self.stages());
        copying.copy(version, ways, made)
    }

    /// How fast it goes where no rate holds it back; none as long as too little was copied to tell.
    pub fn bytes_per_s(&self) -> Option<f64> {
        self.speed.lock().bytes_per_s(clock::now())
    }

    /// Marks in the journal of the stage-out what has arrived although it does not look so. Returns how many
    /// files that are.
    pub fn mark_arrived(&self, journal: &Journal) -> u64 {
        let mut marked = 0;
        for copy in &*self.imprecise.lock() {
            match copy.mark_arrived(journal) {
                Ok(is_marked) => marked += u64::from(is_marked),
                Err(error) => self.job.messages.explain(&error.to_string()), // it is copied again
            }
        }
        marked
    }

    /// Reports what was done by now.
    pub fn report_progress(&self) -> DrainStatus {
        let queue = self.queue.lock();
        let (status, first) = (queue.status(), queue.first_not_staged.clone());
        drop(queue);
        report::report_progress(&status, first.as_deref(), self.job.messages);
        status
    }

    /// The account, after stage-out.
    pub fn summary(&self, status: DrainStatus, staged: Option<&Staged>) -> Drained {
        let last_copied = self.queue.lock().last_copied;
        report::summary(status, staged, self.began, last_copied)
    }

    /// After stage-out, with its journal if there was one: what was left to it is done if it is at its place now.
    pub fn finish(&self, journal: Option<&Journal>) {
        if let Err(error) = finish_directories(&mut self.queue.lock().made) {
            self.job.messages.warning(&error.to_string());
        }
        let Some(journal) = journal else {
            return;
        };
        for version in self.queue.lock().remaining() {
            match self.is_placed(version, journal) {
                Ok(true) => self.log("DONE", version),
                Ok(false) => {}
                Err(error) => return self.job.messages.warning(&error.to_string()),
            }
        }
    }

    /// Has stage-out brought it to where its log says?
    fn is_placed(
        &self,
        version: &Version,
        journal: &Journal,
    ) -> Result<bool, forebay_mover::Error> {
        let rule = self.rule(version);
        for way in rule.ways(&version.closed.path, self.stages()) {
            if !rule.is_logged() || !journal.is_placed(&way.target)? {
                return Ok(false);
            }
        }
        Ok(rule.is_logged())
    }

    fn rule(&self, version: &Version) -> Rule {
        self.rules.lock().rule(version.rule)
    }

    /// The script's stage_out lines.
    fn stages(&self) -> &[Stage] {
        &self.job.request.stage_out
    }

    fn log(&self, state: &str, version: &Version) {
        let rules = self.rules.lock();
        if let Err(error) = rules.log(version.rule, state, &version.closed.path) {
            self.job.messages.explain(&error.to_string());
        }
    }
}
