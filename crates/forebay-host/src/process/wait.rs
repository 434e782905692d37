//! Waits for a job. Nothing polls while a job runs: its end and signals to us arrive as events.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions};
use signal_hook::consts::SIGCHLD;

use super::ended::Ended;
use super::launch::Job;
use super::send::send;
use super::signal_sender;
use super::signals::OF_THE_JOB;
use super::stop_requests::{EventSender, StopRequests};
use crate::{Result, clock};

/// Time that a job that reports on its descendants has for the report, once they are killed.
const TO_TELL: Duration = Duration::from_secs(2);

/// Signals that ask us to stop, and ends of children, as they come.
pub struct Events {
    pub(super) receiver: mpsc::Receiver<i32>,
    pub(super) bell: EventSender,
    /// Children that wait(2) reports although no job of ours started them.
    pub(super) others: RefCell<HashSet<i32>>,
    /// These, and the keeper of a view, which wait(2) does not report.
    pub(super) excluded: RefCell<HashSet<i32>>,
    /// How those of the first did that have ended before somebody waited for them.
    pub(super) ended: RefCell<HashMap<i32, Ended>>,
}

/// What is to be done with a job that runs.
#[derive(Debug, Clone, Copy)]
pub enum WaitAction {
    /// Nothing until then; without a time, until something happens.
    Continue(Option<Instant>),
    /// It is to end.
    End,
}

/// Why a job was asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// This signal came to us.
    Signal(i32),
    /// Its time was up.
    TimeLimit,
}

impl Events {
    /// The count of signals that asked us to stop, to be watched from any thread.
    pub fn stops(&self) -> StopRequests {
        self.bell.stops.clone()
    }

    /// For another thread.
    pub fn bell(&self) -> EventSender {
        self.bell.clone()
    }

    /// From here on what we have started is none of the job's processes, and nor are its descendants.
    pub fn exclude_child(&self, job: Job) {
        let pid = job.pid.as_raw_pid();
        self.others.borrow_mut().insert(pid);
        self.excluded.borrow_mut().insert(pid);
    }

    /// Takes it back: the returned job ends its descendants itself and reports on them.
    pub fn adopt_child(&self, job: Job) -> Job {
        let pid = job.pid.as_raw_pid();
        self.others.borrow_mut().remove(&pid);
        self.excluded.borrow_mut().remove(&pid);
        Job { tells: true, ..job }
    }

    /// Waits for what `look` finds, which is asked again whenever something happens; none if we are
    /// asked to stop.
    pub fn wait_until<T>(&self, mut look: impl FnMut() -> Option<T>) -> Option<T> {
        while self.bell.stops.count() == 0 {
            if let Some(found) = look() {
                return Some(found);
            }
            self.next(None);
        }
        None
    }

    /// Waits for the job to end. When we are asked to stop, or `look` says so, all its processes get
    /// SIGTERM (one that was taken in, it alone); asked again or after `grace` they get SIGKILL. SIGUSR1 and
    /// SIGUSR2 are handed on to those of them that catch it. Returns also what ended it so. `look` is asked
    /// whenever something happens, and at the time that it names.
    ///
    /// # Errors
    /// If /proc cannot be read, or those of `look`.
    pub fn wait(
        &self,
        job: Job,
        grace: impl Fn(EndReason) -> Duration,
        mut look: impl FnMut(&Self) -> Result<WaitAction>,
    ) -> Result<(Ended, Option<EndReason>)> {
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
                        send(job.pid, Signal::TERM)?; // or it would begin the next one
                    } else {
                        self.signal_all(Signal::TERM)?;
                    }
                }
                _ => {
                    let since = *killing.get_or_insert_with(clock::now);
                    let is_to_tell = job.tells && since.elapsed() < TO_TELL;
                    let mut pids = self.descendants()?;
                    pids.retain(|pid| *pid != job.pid || !is_to_tell);
                    pids.into_iter().try_for_each(|pid| send(pid, Signal::KILL))?;
                    deadline = Some(clock::now() + Duration::from_millis(100));
                }
            }
        }
    }

    /// Waits for the process to end, and hands each signal that comes to us on to it alone: it
    /// knows how to end what it has begun. At the time limit all descendants get SIGTERM, and SIGKILL
    /// after `grace`. Returns also what asked it first to end.
    pub fn wait_forwarding_signals(
        &self,
        job: Job,
        limit: Option<Duration>,
        grace: Duration,
    ) -> Result<(Ended, Option<EndReason>)> {
        let mut asked = None;
        let mut at_the_limit = Signal::TERM;
        // A limit beyond what the clock can count is none.
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

    /// Reaps all children that have ended. Tells whether there are others, and how `wanted` did if it
    /// was among them, or was left out and has ended before.
    pub(super) fn reap(&self, wanted: Option<Pid>) -> (bool, Option<Ended>) {
        let mut ended = self.ended.borrow_mut();
        let wanted = wanted.map(Pid::as_raw_pid);
        let is_kept = |pid: i32| wanted == Some(pid) || self.others.borrow().contains(&pid);
        let children_left = loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if is_kept(pid.as_raw_pid()) => {
                    ended.extend(Ended::of(status).map(|how| (pid.as_raw_pid(), how)));
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        (children_left, wanted.and_then(|wanted| ended.remove(&wanted)))
    }

    /// The next event; `None` when the deadline has passed first.
    pub(super) fn next(&self, deadline: Option<Instant>) -> Option<i32> {
        let Some(deadline) = deadline else {
            return self.receiver.recv().ok();
        };
        let left = deadline.saturating_duration_since(clock::now());
        self.receiver.recv_timeout(left).ok()
    }
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

    // One test: the events of a process are shared by all its threads.
    #[test]
    fn a_job_is_waited_for_and_what_it_leaves_behind_is_ended() {
        // A shell starts what it runs in the background with SIGINT ignored, and it would stay so.
        // SAFETY: the default action is set; no handler of ours runs.
        unsafe { libc::signal(SIGINT, libc::SIG_DFL) };
        let events = SignalGuard::listen().expect("listen").watch(None);
        let grace = Duration::from_secs(20);
        let go_on = |_: &Events| Ok(WaitAction::Continue(None));
        for (script, ended) in [
            ("exit 7", Ended::Exit(7)),
            ("kill -9 $$", Ended::Signal(9)),
            ("sleep 300 & (setsid sleep 300 &) ; exit 0", Ended::Exit(0)),
        ] {
            let job = start_job(shell(script)).expect("start");
            let (found, asked) = events.wait(job, |_| grace, go_on).expect("wait");
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
        let (found, asked) = events.wait(job, soon, go_on).expect("wait");
        assert_eq!((found, asked), (Ended::Signal(9), Some(EndReason::Signal(SIGINT))));
        assert_eq!(events.stops().count(), 1);

        let missing = start_job(command("/no/such")).expect_err("missing");
        assert!(missing.to_string().starts_with("cannot run /no/such: No such file"));
    }
}
