//! Drains files while the job runs: each version of a closed file is copied at once to the target
//! of its stage_out line or to another directory. Stage-out skips files that were copied and have
//! not changed. It copies all others, so a failure here loses no data.
//!
//! One thread receives closed files (`forebay_host::close_watch`). Others copy at low priority. One
//! answers processes of the job (`control`).

mod control;
mod copying;
mod queue;
mod report;
mod rules;
mod spec;
mod speed;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use forebay_cluster::NodeHandle;
use forebay_directive::{Request, Stage};
use forebay_host::clock;
use forebay_host::close_watch::{CloseEvent, CloseWatcher, WatchHandle};
use forebay_host::messages::Messages;
use forebay_host::process::StopRequests;
use forebay_host::{priority, threads};
use forebay_mover::{Failure, Journal, Number, Verify};
use forebay_store::Allocation;
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::Error;
use crate::other_nodes::OtherNodes;
use crate::versions::Version;
use control::Control;
use copying::{Copying, TimelessCopies, finish_directories};
use forebay_record::{DrainTarget, RecordFile, TargetLog, WriteFailures, tag};
use forebay_staging::StagingSummary;
use queue::{CopyOutcome, Queue};
use rules::{Rule, Rules};
use speed::Speed;

pub use control::{ControlRequest, query_drain};
pub use queue::DrainStatus;
pub use report::Drained;
pub use rules::not_in_burst_buffer;
pub use spec::check;
pub use spec::{DrainSpec, Spectral};

/// The variable with the text of `--drain`, used if the option is missing. Directives have no place for it.
pub const DRAIN_VARIABLE: &str = "FOREBAY_DRAIN";

/// Threads that copy.
const WORKERS: usize = 4;

/// The description of the job to drain.
pub struct Job<'a> {
    /// The id of the job.
    pub id: &'a str,
    /// The job directory, which gets the socket.
    pub directory: &'a Path,
    /// The request of the job script.
    pub request: &'a Request,
    /// The allocation of the job.
    pub allocation: &'a Allocation,
    /// Directories of the namespaces.
    pub roots: Vec<PathBuf>,
    /// The directories of namespaces that other nodes share, and those nodes.
    pub shared: (Vec<PathBuf>, Vec<NodeHandle>),
    /// The second path of the private namespace, as the job sees it.
    pub node_local: Option<PathBuf>,
    /// The `--drain` options.
    pub specs: &'a [DrainSpec],
    /// The directories that Spectral drains.
    pub spectral: &'a Spectral,
    /// When Forebay compares copies with their sources.
    pub verify: Verify,
    /// Finds files with a failed write, which are left to the stage-out.
    pub write_failures: WriteFailures,
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
    timeless: Mutex<TimelessCopies>,
    speed: Mutex<Speed>,
    /// Held while directories are created at a destination.
    mkdir_lock: Mutex<()>,
    began: Instant,
}

impl<'a> Drain<'a> {
    /// Creates the drain that the job requests; none if it requests nothing.
    ///
    /// # Errors
    /// If a requested drain is impossible.
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
            timeless: Mutex::default(),
            speed: Mutex::default(),
            mkdir_lock: Mutex::default(),
            began: clock::now(),
        }))
    }

    /// The targets that no stage_out line names.
    pub fn extra_targets(&self) -> Vec<DrainTarget> {
        self.rules.lock().extra_targets()
    }

    /// Drains while the job runs. When the job ends, Forebay completes the copies in progress. A stop
    /// request cancels them: stage-out must first report what is not safe, and time may be short.
    ///
    /// # Errors
    /// The error of the job. If nothing can be watched, the job is not started.
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
        let watch = closes.handle();
        let others = self.watch_other_nodes(&watch)?;
        let others = others.as_ref();
        let control = Control::listen(self.job.directory).map_err(Error::from)?;
        let target_log = TargetLog::of(recorded);
        let recorded = Mutex::new(recorded);
        let handle = |request| self.handle(request, (&watch, others), &recorded);
        std::thread::scope(|scope| {
            let left = |error: forebay_host::Error, what: &str| {
                self.job.messages.warning(&format!("drain: {error}: {what}"));
            };
            if let Err(error) = threads::spawn_scoped(scope, || self.listen(closes)) {
                self.mark_all_unwatched(&error);
                self.queue.lock().synced_to = u64::MAX;
                left(error, "all files wait for the stage-out");
            }
            let target_log = &target_log;
            let copy = |number| threads::spawn_scoped(scope, move || self.copy(number, target_log));
            let (copies, refused): (Vec<_>, Vec<_>) =
                (0..WORKERS).map(copy).partition(std::result::Result::is_ok);
            if let Some(Err(error)) = refused.into_iter().next().filter(|_| copies.is_empty()) {
                self.queue.lock().cannot_copy = true;
                left(error, "all files wait for the stage-out");
            }
            if let Err(error) = threads::spawn_scoped(scope, || control.serve(&handle)) {
                control.close();
                left(error, "forebay drain status and wait fail");
            }
            let ended = job();
            // All processes of the job have ended, so they close no further files.
            self.wait_for_events(&watch, others);
            self.queue.lock().job_ended = true;
            self.queue_changed.notify_all();
            for copy in copies.into_iter().flatten() {
                copy.join().ok(); // it returns nothing
            }
            watch.stop().ok(); // the watch may have ended already
            control.close();
            ended
        })
    }

    /// Watches what processes of other nodes close; none if no node shares a namespace.
    fn watch_other_nodes(&self, watch: &WatchHandle) -> Result<Option<OtherNodes>, Error> {
        let (roots, nodes) = &self.job.shared;
        if roots.is_empty() || nodes.is_empty() {
            return Ok(None);
        }
        let watch = watch.clone();
        let sink = Box::new(move |path: &Path| {
            watch.report(path.to_owned()).ok(); // the stage-out copies what the drain does not
        });
        let others = OtherNodes::watch(nodes.clone(), "drain", roots, sink);
        others.map(Some).map_err(|error| Error::Request {
            message: format!("drain: {error}"),
            hint: "see fs.inotify in sysctl: max_user_watches, max_user_instances",
        })
    }

    /// Handles a request of a job process. Returns the status afterwards and the error.
    fn handle(
        &self,
        request: ControlRequest,
        (watch, others): (&WatchHandle, Option<&OtherNodes>),
        recorded: &Mutex<&mut RecordFile>,
    ) -> (DrainStatus, Option<String>) {
        let done =
            match request {
                ControlRequest::Status => Ok(()),
                ControlRequest::Wait => {
                    let number = self.wait_for_events(watch, others);
                    drop(self.wait_while(|queue| {
                        !queue.is_done_before(number) && !queue.has_no_copies()
                    }));
                    Ok(())
                }
                ControlRequest::Spectral { persist, pfs } => {
                    self.add_spectral_rule(&persist, &pfs, recorded)
                }
            };
        let error = done.err().map(|error| error.to_string());
        (self.queue.lock().status(), error)
    }

    /// Updates the job record first, so that the rule survives a crash of Forebay.
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
        let extra_targets = rules.extra_targets();
        recorded.lock().update(|record| record.drain_to = extra_targets)?;
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

    /// Waits until all files closed so far are in the queue. Returns the number of the next version.
    fn wait_for_events(&self, watch: &WatchHandle, others: Option<&OtherNodes>) -> u64 {
        if let Some(others) = others {
            others.sync();
        }
        let ticket = watch.request_ticket().unwrap_or_else(|error| {
            self.mark_all_unwatched(&error);
            0
        });
        let behind = |queue: &mut Queue| queue.synced_to < ticket && !queue.job_ended;
        self.wait_while(behind).next_number()
    }

    fn wait_while(&self, condition: impl FnMut(&mut Queue) -> bool) -> MutexGuard<'_, Queue> {
        let mut queue = self.queue.lock();
        self.queue_changed.wait_while(&mut queue, condition);
        queue
    }

    /// Marks all roots as unwatched.
    fn mark_all_unwatched(&self, error: &forebay_host::Error) {
        let mut queue = self.queue.lock();
        for root in &self.job.roots {
            queue.mark_unwatched(root, error);
        }
    }

    /// Queues closed files until the watch ends.
    fn listen(&self, closes: CloseWatcher) {
        if threads::caught(|| self.queue_closed(closes)).is_none() {
            let error = std::io::Error::other("its thread ended unexpectedly");
            self.mark_all_unwatched(&forebay_host::threads::error(error));
        }
        self.queue.lock().synced_to = u64::MAX;
        self.queue_changed.notify_all();
    }

    fn queue_closed(&self, mut closes: CloseWatcher) {
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
    }

    /// Queues a version that matches a rule.
    fn add(&self, version: Version) {
        let (rule, path) = (self.rule(&version), &version.closed.path);
        if rule.destinations(path, self.stages()).is_empty() {
            return self.queue.lock().count_unmatched(path);
        }
        self.log("ENQUEUE", &version);
        self.queue.lock().add(version);
    }

    /// The loop of a copying thread. There are several: one thread uses one storage target at a
    /// time if files are not striped, and it waits for a sync after each small file.
    fn copy(&self, number: usize, target_log: &TargetLog) {
        if let Err(error) = priority::lower_priority() {
            self.job.messages.explain(&format!("drain: {error}"));
        }
        while let Some(version) = self.take() {
            self.log("DEQUEUE", &version);
            let mut made = Vec::new();
            let copied =
                threads::caught(|| self.copy_one((number, target_log), &version, &mut made));
            let path = &version.closed.path;
            let failed = || Failure::new(path.clone(), "its copy ended unexpectedly".to_owned());
            let copied = copied.unwrap_or_else(|| CopyOutcome::Failed(failed()));
            if matches!(copied, CopyOutcome::Done) {
                self.log("DONE", &version);
            }
            let mut queue = self.queue.lock();
            queue.made.append(&mut made);
            queue.complete(&version, copied, clock::now());
            drop(queue);
            self.queue_changed.notify_all();
        }
    }

    /// Waits for the next version; none when the job has ended.
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
        made: &mut Vec<queue::CreatedDirectory>,
    ) -> CopyOutcome {
        let rule = self.rule(version);
        let has_ended = || self.queue.lock().job_ended;
        let yields = AtomicBool::new(true);
        // A thread of the mover calls this. The I/O class is per thread, so each thread sets its own.
        let on_bytes = |bytes: u64| {
            if has_ended() {
                if yields.swap(false, Ordering::Relaxed) {
                    priority::set_default_io_class().ok(); // the copy continues on failure
                }
            } else if let Some((_, limit)) = &rule.rate {
                limit.wait(bytes, has_ended); // the limit ends with the job
            }
        };
        let cancelled = || self.stops.count() > 0 && has_ended();
        let copying = Copying {
            target_log: (target_log, self.job.messages),
            timeless: &self.timeless,
            mkdir_lock: &self.mkdir_lock,
            tag: tag(self.job.id, number),
            verify: self.job.verify,
            write_failures: &self.job.write_failures,
            speed: rule.rate.is_none().then_some(&self.speed),
            on_bytes: &on_bytes,
            cancelled: &cancelled,
        };
        let ways = rule.destinations(&version.closed.path, self.stages());
        copying.copy(version, ways, made)
    }

    /// The speed of copies without a rate limit; none if too little was copied to estimate it.
    pub fn bytes_per_s(&self) -> Option<f64> {
        self.speed.lock().bytes_per_s(clock::now())
    }

    /// Marks unchanged copies in the journal of the stage-out, which could not tell it by their times. Reads sources in
    /// memory only if `should_continue` is given, until it returns false. Returns the marked files.
    pub fn mark_arrived(
        &self,
        journal: &Journal,
        should_continue: Option<&(dyn Fn() -> bool + Sync)>,
    ) -> Number {
        let copies = self.timeless.lock();
        let all: Vec<_> = copies.iter().collect();
        let next = AtomicUsize::new(0);
        let unchanged = Mutex::new(Vec::new());
        let look = || {
            while let Some((target, copy)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                if copy.is_unchanged(target, should_continue.map(|ask| ask as &dyn Fn() -> bool)) {
                    unchanged.lock().push((target.as_path(), &copy.closed.status));
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..WORKERS.min(all.len()) {
                threads::spawn_scoped(scope, look).ok(); // this thread looks, too
            }
            look();
        });
        let marked = journal.mark_delivered(unchanged.into_inner().into_iter());
        // What is not marked is compared or copied again.
        marked.unwrap_or_else(|error| {
            self.job.messages.explain(&error.to_string());
            Number::default()
        })
    }

    /// Reports what was drained so far.
    pub fn report_progress(&self) -> DrainStatus {
        let queue = self.queue.lock();
        let (status, first) = (queue.status(), queue.first_not_staged.clone());
        drop(queue);
        report::report_progress(&status, first.as_deref(), self.job.messages);
        for pattern in self.rules.lock().unmatched() {
            let warning = format!("drain: no file that was closed matched {pattern}");
            self.job.messages.warning(&warning);
        }
        status
    }

    /// The summary, after stage-out.
    pub fn summary(&self, status: DrainStatus, staged: Option<&StagingSummary>) -> Drained {
        let last_copied = self.queue.lock().last_copied;
        report::summary(status, staged, self.began, last_copied)
    }

    /// After stage-out, logs the versions that it copied according to `journal`.
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

    /// Has stage-out copied the file to all its logged targets?
    fn is_placed(
        &self,
        version: &Version,
        journal: &Journal,
    ) -> Result<bool, forebay_mover::Error> {
        let rule = self.rule(version);
        for way in rule.destinations(&version.closed.path, self.stages()) {
            if !rule.is_logged() || !journal.is_placed(&way.target)? {
                return Ok(false);
            }
        }
        Ok(rule.is_logged())
    }

    fn rule(&self, version: &Version) -> Rule {
        self.rules.lock().rule(version.rule)
    }

    /// The stage_out lines of the script.
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
