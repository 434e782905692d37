//! Waits for a job. The end of the job and signals arrive as events, without polling.
//! Reaps every child of the process: another owner of a child, such as `run_captured`, may not get its exit status.
//! Never gives up a job: it also waits for one that survives SIGKILL.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions};
use signal_hook::consts::SIGCHLD;

use super::ended::ExitStatus;
use super::launch::Job;
use super::send::send;
use super::signal_sender;
use super::signals::OF_THE_JOB;
use super::stop_requests::{EventSender, StopRequests};
use super::transferred::Transferred;
use crate::{Result, clock};

/// The time for a job that reports on its descendants to do so after they are killed.
const REPORT_TIMEOUT: Duration = Duration::from_secs(2);

/// The queue of stop requests and ends of children.
pub struct Events {
    pub(super) receiver: mpsc::Receiver<i32>,
    pub(super) sender: EventSender,
    /// Children that wait(2) reports although they do not belong to a job.
    pub(super) others: RefCell<HashSet<i32>>,
    /// These children and the keeper of a view, which wait(2) does not report.
    pub(super) excluded: RefCell<HashSet<i32>>,
    /// How children in `others` ended before anyone waited for them.
    pub(super) ended: RefCell<HashMap<i32, ExitStatus>>,
    /// What the processes of jobs moved until they ended; none if the kernel did not tell.
    pub(super) transferred: Cell<Option<Transferred>>,
}

/// The next action for a running job.
#[derive(Debug, Clone, Copy)]
pub enum WaitAction {
    /// Continue until this time; without a time, until the next event.
    Continue(Option<Instant>),
    /// End the job.
    End,
}

/// Why Forebay asked a job to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// Forebay received this signal.
    Signal(i32),
    /// The time limit is reached.
    TimeLimit,
}

impl Events {
    /// The count of stop requests, for any thread.
    pub fn stops(&self) -> StopRequests {
        self.sender.stops.clone()
    }

    /// A sender of events, for another thread.
    pub fn sender(&self) -> EventSender {
        self.sender.clone()
    }

    /// Excludes a started process and its descendants from the processes of the job.
    pub fn exclude_child(&self, job: Job) {
        self.exclude_pid(job.pid.as_raw_pid());
    }

    /// The same for a child of this process ID.
    pub fn exclude_pid(&self, pid: i32) {
        self.others.borrow_mut().insert(pid);
        self.excluded.borrow_mut().insert(pid);
    }

    /// Includes it again. The returned job ends its own descendants and reports on them.
    pub fn adopt_child(&self, job: Job) -> Job {
        let pid = job.pid.as_raw_pid();
        self.others.borrow_mut().remove(&pid);
        self.excluded.borrow_mut().remove(&pid);
        Job { tells: true, ..job }
    }

    /// Calls `look` after each event until it returns a value. Returns none after a stop request.
    pub fn wait_until<T>(&self, mut look: impl FnMut() -> Option<T>) -> Option<T> {
        while self.sender.stops.count() == 0 {
            if let Some(found) = look() {
                return Some(found);
            }
            self.next(None);
        }
        None
    }

    /// Waits for the job to end, and returns how and why it ended. On a stop request, or if `look`
    /// returns `End`, sends SIGTERM to all its processes (only to the job itself if it reports on
    /// descendants). On a second request or after `grace`, sends SIGKILL. Passes SIGUSR1 and
    /// SIGUSR2 on if caught. Calls `look` after each event and at the time that it returns.
    ///
    /// # Errors
    /// If /proc cannot be read, or `look` fails.
    pub fn wait(
        &self,
        job: Job,
        grace: impl Fn(EndReason) -> Duration,
        mut look: impl FnMut(&Self) -> Result<WaitAction>,
    ) -> Result<(ExitStatus, Option<EndReason>)> {
        let mut asked = None;
        let (mut deadline, mut killing) = (None, None);
        loop {
            if let (_, Some(ended)) = self.reap(Some(job.pid)) {
                return Ok((ended, asked));
            }
            let mut why = None;
            if asked.is_none() {
                match look(self)? {
                    WaitAction::Continue(until) => deadline = until,
                    WaitAction::End => why = Some(EndReason::TimeLimit),
                }
            }
            if why.is_none() {
                match self.next(deadline) {
                    Some(SIGCHLD) => continue,
                    Some(signal) if OF_THE_JOB.contains(&signal) => {
                        self.signal_catching(signal)?;
                        continue;
                    }
                    None if asked.is_none() => continue,
                    event => why = event.map(EndReason::Signal),
                }
            }
            match why {
                Some(why) if asked.is_none() => {
                    asked = Some(why);
                    deadline = Some(clock::now() + grace(why));
                    if job.tells {
                        send(job.pid, Signal::TERM)?; // ending its step would start the next
                    } else {
                        self.signal_all(Signal::TERM)?;
                    }
                }
                _ => {
                    let since = *killing.get_or_insert_with(clock::now);
                    let may_report = job.tells && since.elapsed() < REPORT_TIMEOUT;
                    let mut pids = self.descendants()?;
                    pids.retain(|pid| *pid != job.pid || !may_report);
                    pids.into_iter().try_for_each(|pid| send(pid, Signal::KILL))?;
                    deadline = Some(clock::now() + Duration::from_millis(100));
                }
            }
        }
    }

    /// Waits for the process to end, and passes signals on to that process only. At the time limit,
    /// sends SIGTERM to all descendants, and SIGKILL after `grace`. Returns how it ended, and the
    /// first reason to end.
    pub fn wait_forwarding_signals(
        &self,
        job: Job,
        limit: Option<Duration>,
        grace: Duration,
    ) -> Result<(ExitStatus, Option<EndReason>)> {
        let mut asked = None;
        let mut at_the_limit = Signal::TERM;
        // A limit beyond the range of the clock means no limit.
        let mut deadline = limit.and_then(|limit| clock::now().checked_add(limit));
        loop {
            if let (_, Some(ended)) = self.reap(Some(job.pid)) {
                return Ok((ended, asked));
            }
            match self.next(deadline) {
                Some(SIGCHLD) => {}
                Some(signal) => {
                    asked = asked.or(Some(EndReason::Signal(signal)));
                    let has_it = job.in_our_group && signal_sender::is_the_kernel(signal);
                    if let Some(signal) = Signal::from_named_raw(signal).filter(|_| !has_it) {
                        send(job.pid, signal)?;
                    }
                }
                None => {
                    asked = Some(EndReason::TimeLimit);
                    self.signal_all(at_the_limit)?;
                    at_the_limit = Signal::KILL;
                    deadline = Some(clock::now() + grace);
                }
            }
        }
    }

    /// Reaps all children that have ended. Returns whether children are left, and how `wanted`
    /// ended if it ended now or, as an excluded child, earlier.
    pub(super) fn reap(&self, wanted: Option<Pid>) -> (bool, Option<ExitStatus>) {
        let mut ended = self.ended.borrow_mut();
        let wanted = wanted.map(Pid::as_raw_pid);
        let is_kept = |pid: i32| wanted == Some(pid) || self.others.borrow().contains(&pid);
        let children_left = loop {
            let pid = match peek_at_ended() {
                Ok(Some(pid)) => pid,
                Err(nix::errno::Errno::EINTR) => continue,
                Ok(None) => break true,
                Err(_) => break false,
            };
            let (moved, reaped) = Transferred::of_ended(pid.as_raw_pid(), || {
                rustix::process::waitpid(Some(pid), WaitOptions::NOHANG).ok().flatten()
            });
            self.add_transferred(pid.as_raw_pid(), moved);
            if let Some((_, status)) = reaped.filter(|_| is_kept(pid.as_raw_pid())) {
                ended.extend(ExitStatus::of(status).map(|how| (pid.as_raw_pid(), how)));
            }
        };
        (children_left, wanted.and_then(|wanted| ended.remove(&wanted)))
    }

    fn add_transferred(&self, pid: i32, moved: Option<Transferred>) {
        if !self.excluded.borrow().contains(&pid) {
            let sum = self.transferred.get().zip(moved);
            self.transferred.set(sum.map(|(sum, more)| sum.plus(more)));
        }
    }

    /// What the processes of jobs have moved, of those that have ended. None if the kernel does not
    /// tell.
    pub fn transferred(&self) -> Option<Transferred> {
        self.transferred.get()
    }

    /// The next event; none at the deadline.
    pub(super) fn next(&self, deadline: Option<Instant>) -> Option<i32> {
        let Some(deadline) = deadline else {
            return self.receiver.recv().ok();
        };
        let left = deadline.saturating_duration_since(clock::now());
        self.receiver.recv_timeout(left).ok()
    }
}

/// A child that has ended and stays to be waited for. None if all children run.
fn peek_at_ended() -> nix::Result<Option<Pid>> {
    use nix::sys::wait::{Id, WaitPidFlag, waitid};
    let how = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    let found = waitid(Id::All, how)?;
    Ok(found.pid().and_then(|pid| Pid::from_raw(pid.as_raw())))
}

#[cfg(test)]
mod tests {
    use super::super::launch::{command, start_job};
    use super::super::orphans::Orphans;
    use super::super::signals::SignalGuard;
    use super::*;
    use signal_hook::consts::SIGINT;
    use std::process::Command;

    fn shell(script: &str) -> Command {
        let mut command = command("/bin/sh");
        command.args(["-c", script]);
        command
    }

    // A single test, because all threads share the events of the process.
    #[test]
    fn job_is_waited_for_and_its_orphans_are_ended() {
        // A shell starts background programs with SIGINT ignored, and children inherit that.
        // SAFETY: sets the default action; the test has no handler for it.
        unsafe { libc::signal(SIGINT, libc::SIG_DFL) };
        let events = SignalGuard::listen().expect("listen").watch(None).expect("watch");
        let grace = Duration::from_secs(20);
        let should_continue = |_: &Events| Ok(WaitAction::Continue(None));
        for (script, ended) in [
            ("exit 7", ExitStatus::Exit(7)),
            ("kill -9 $$", ExitStatus::Signal(9)),
            ("sleep 300 & (setsid sleep 300 &) ; exit 0", ExitStatus::Exit(0)),
        ] {
            let job = start_job(shell(script)).expect("start");
            let (found, asked) = events.wait(job, |_| grace, should_continue).expect("wait");
            assert_eq!((found, asked), (ended, None), "{script}");
        }
        let two = Orphans { found: 2, remaining: Vec::new() };
        assert_eq!(events.kill_orphans(grace).expect("end"), two);
        assert_eq!(events.kill_orphans(grace).expect("end"), Orphans::default());

        let scratch = tempfile::tempdir().expect("tempdir");
        let ready = scratch.path().join("ready");
        let mut stubborn =
            shell("trap '' TERM; sleep 300 & touch \"$READY\"; while :; do wait; done");
        stubborn.env("READY", &ready);
        let job = start_job(stubborn).expect("start");
        while !ready.exists() {
            clock::sleep(Duration::from_millis(1));
        }
        let us = rustix::process::getpid();
        rustix::process::kill_process(us, Signal::INT).expect("kill");
        let soon = |_| Duration::from_millis(200);
        let (found, asked) = events.wait(job, soon, should_continue).expect("wait");
        assert_eq!((found, asked), (ExitStatus::Signal(9), Some(EndReason::Signal(SIGINT))));
        assert_eq!(events.stops().count(), 1);

        let before = events.transferred().expect("the kernel counts");
        let zeros = "head -c 1000000 /dev/zero > /dev/null; (head -c 500000 /dev/zero > /dev/null)";
        events.wait(start_job(shell(zeros)).expect("start"), soon, should_continue).expect("wait");
        let moved = events.transferred().expect("the kernel counts").since(before);
        assert!((1_500_000..1_600_000).contains(&moved.written_bytes), "{moved:?}");

        let missing = start_job(command("/no/such")).expect_err("missing");
        assert!(missing.to_string().starts_with("cannot run /no/such: No such file"));
    }
}
