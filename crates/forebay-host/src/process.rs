//! Processes and signals.
//!
//! The process that calls [`Caught::listen`] becomes the reaper of all its descendants: whatever a
//! job leaves behind is found and ended, as a scheduler's process tracking does. Nothing here
//! polls while a job runs: the end of a process and a signal to us arrive as events.

mod answer;
mod ended;
mod first_act;
mod group;
mod origin;
mod reference;
mod stops;
mod table;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use crate::{Result, clock, on};

pub use answer::answer_of;
pub use ended::Ended;
pub use first_act::renames_first;
pub use group::{Group, GroupNumber};
pub use reference::{Liveness, ProcessRef};
pub use stops::{Bell, Stops};
pub(crate) use table::KEEPER;
pub use table::{Identity, at_work_in, end, in_view_of, with_variable};
use table::{children_of, processes};

/// Signals that ask us to stop.
const STOPS: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];
/// Signals whose meaning is the job's alone (`sbatch --signal=B:USR1@60`).
const OF_THE_JOB: [i32; 2] = [SIGUSR1, SIGUSR2];
/// Time a job that tells what became of those below it has for that, once they are killed.
const TO_TELL: Duration = Duration::from_secs(2);

/// Signals are caught and kept until [`Caught::watch`] looks at them.
pub struct Caught {
    signals: Signals,
    /// Those that ask us to stop.
    stops: Vec<i32>,
    /// Children we had before: `exec forebay` in a shell that had started something. Not a job's.
    others: HashSet<i32>,
}

/// Signals that ask us to stop, and ends of children, as they come.
pub struct Events {
    receiver: mpsc::Receiver<i32>,
    bell: Bell,
    /// Children that wait(2) reports although no job of ours started them.
    others: RefCell<HashSet<i32>>,
    /// These, and the keeper of a view, which wait(2) does not report.
    left_out: RefCell<HashSet<i32>>,
    /// How those of the first did that have ended before somebody waited for them.
    ended: RefCell<HashMap<i32, Ended>>,
}

/// What became of the processes a job had left behind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Leftovers {
    /// How many there were at first.
    pub found: usize,
    /// Those that could not be ended: another user's, or stuck in the kernel.
    pub remaining: Vec<i32>,
}

/// What is to be done with a job that runs.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    /// Nothing until then; without a time, until something happens.
    GoOn(Option<std::time::Instant>),
    /// It is to end.
    End,
}

/// Why a job was asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// This signal came to us.
    Signal(i32),
    /// Its time was up.
    TimeLimit,
}

/// A job that was started.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    pid: Pid,
    /// A terminal's signals reach it without us.
    in_our_group: bool,
    tells: bool,
}

/// A program to be started with [`Command`]'s own options.
#[must_use]
pub fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

/// Leaves the terminal and its session, so that neither its end nor its keys reach us. Not for a process
/// that leads a group.
pub fn leave_session() {
    rustix::process::setsid().ok(); // whoever leads a group has left it already
}

/// Replaces this process by the command.
#[must_use]
pub fn replace_by(mut command: Command) -> crate::Error {
    let source = command.exec();
    let path = Path::new(command.get_program()).to_owned();
    crate::Error {
        operation: "run",
        path,
        source,
    }
}

impl Caught {
    /// Catches SIGINT, SIGTERM, SIGHUP and SIGQUIT from here on, and SIGUSR1 and SIGUSR2 for the job, but
    /// those that were ignored when we were started (nohup) stay ignored; and becomes the reaper of all
    /// descendants.
    ///
    /// # Errors
    /// If the kernel refuses either.
    pub fn listen() -> Result<Self> {
        Self::listen_to(&STOPS)
    }

    /// The same, where SIGUSR1 and SIGUSR2 are events as all others.
    ///
    /// # Errors
    /// As [`Caught::listen`].
    pub fn listen_for_a_command() -> Result<Self> {
        Self::listen_to(&[&STOPS[..], &OF_THE_JOB].concat())
    }

    fn listen_to(stops: &[i32]) -> Result<Self> {
        let here = Path::new("this process");
        on(
            rustix::process::set_child_subreaper(Some(rustix::process::getpid())),
            "become the reaper of the children of",
            here,
        )?;
        let ignored = table::signals_of("self", "SigIgn:")?;
        let all = [&STOPS[..], &OF_THE_JOB].concat();
        let wanted = all
            .into_iter()
            .filter(|signal| ignored & (1 << (signal - 1)) == 0);
        let wanted: Vec<_> = wanted.collect();
        on(origin::note(&wanted), "catch the signals of", here)?;
        let caught = Signals::new(wanted.into_iter().chain([SIGCHLD]));
        let signals = on(caught, "catch the signals of", here)?;
        let others = children_of(us(), &HashSet::new(), &processes()?);
        let others = others.into_iter().collect();
        let stops = stops.to_vec();
        Ok(Self {
            signals,
            stops,
            others,
        })
    }

    /// Starts to look at what was caught and what comes, in a thread. The keeper of our view is none
    /// of a job's processes.
    #[must_use]
    pub fn watch(self, keeper: Option<Identity>) -> Events {
        let Self {
            mut signals,
            stops: asking,
            others,
        } = self;
        let (sender, receiver) = mpsc::channel();
        let stops = Stops::default();
        let bell = Bell {
            sender: sender.clone(),
            stops: stops.clone(),
        };
        for signal in signals.pending().filter(|signal| *signal != SIGCHLD) {
            if asking.contains(&signal) {
                stops.add(signal);
            }
            sender.send(signal).ok(); // we hold the other end
        }
        std::thread::spawn(move || {
            for signal in signals.forever() {
                if asking.contains(&signal) {
                    stops.add(signal);
                }
                if sender.send(signal).is_err() {
                    return;
                }
            }
        });
        let keeper = keeper.map(|keeper| keeper.pid);
        let left_out = others.iter().copied().chain(keeper).collect();
        Events {
            receiver,
            bell,
            others: RefCell::new(others),
            left_out: RefCell::new(left_out),
            ended: RefCell::default(),
        }
    }
}

impl Events {
    /// The count of signals that asked us to stop, to be watched from any thread.
    #[must_use]
    pub fn stops(&self) -> Stops {
        self.bell.stops.clone()
    }

    /// For another thread.
    #[must_use]
    pub fn bell(&self) -> Bell {
        self.bell.clone()
    }

    /// From here on what we have started is none of the job's processes, and nor are its descendants.
    pub fn leave_out(&self, job: Job) {
        let pid = job.pid.as_raw_pid();
        self.others.borrow_mut().insert(pid);
        self.left_out.borrow_mut().insert(pid);
    }

    /// From here on they are again. The job that is returned ends those below it, and tells what became of them.
    pub fn take_in(&self, job: Job) -> Job {
        let pid = job.pid.as_raw_pid();
        self.others.borrow_mut().remove(&pid);
        self.left_out.borrow_mut().remove(&pid);
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
        grace: impl Fn(Asked) -> Duration,
        mut look: impl FnMut(&Self) -> Result<Step>,
    ) -> Result<(Ended, Option<Asked>)> {
        let mut asked = None;
        let (mut deadline, mut killing) = (None, None);
        loop {
            if let (_, Some(ended)) = self.reap(Some(job.pid)) {
                return Ok((ended, asked));
            }
            let mut why = None;
            if asked.is_none() {
                match look(self)? {
                    Step::GoOn(until) => deadline = until,
                    Step::End => why = Some(Asked::TimeLimit),
                }
            }
            if why.is_none() {
                match self.next(deadline) {
                    Some(SIGCHLD) => continue,
                    Some(signal) if OF_THE_JOB.contains(&signal) => {
                        self.signal_those_that_catch(signal)?;
                        continue;
                    }
                    None if asked.is_none() => continue,
                    event => why = event.map(Asked::Signal),
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
                    pids.into_iter()
                        .try_for_each(|pid| send(pid, Signal::KILL))?;
                    deadline = Some(clock::now() + Duration::from_millis(100));
                }
            }
        }
    }

    /// Waits for the process to end, and hands each signal that comes to us on to it alone: it
    /// knows how to end what it has begun. At the time limit all descendants get SIGTERM, and SIGKILL
    /// after `grace`. Returns also what asked it first to end.
    ///
    /// # Errors
    /// If a signal cannot be sent, or /proc cannot be read.
    pub fn wait_handing_signals_on(
        &self,
        job: Job,
        limit: Option<Duration>,
        grace: Duration,
    ) -> Result<(Ended, Option<Asked>)> {
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
                    asked = asked.or(Some(Asked::Signal(signal)));
                    let has_it = job.in_our_group && origin::is_the_kernel(signal);
                    if let Some(signal) = Signal::from_named_raw(signal).filter(|_| !has_it) {
                        send(job.pid, signal)?;
                    }
                }
                None => {
                    asked = Some(Asked::TimeLimit);
                    self.signal_all(at_the_limit)?;
                    at_the_limit = Signal::KILL;
                    deadline = Some(clock::now() + grace);
                }
            }
        }
    }

    /// Ends every descendant that is left: SIGTERM, and SIGKILL after `grace` or when we are asked
    /// to stop. What cannot be ended within ten times `grace` is returned.
    ///
    /// # Errors
    /// If /proc cannot be read.
    pub fn end_leftovers(&self, grace: Duration) -> Result<Leftovers> {
        if self.all_gone()? {
            return Ok(Leftovers::default());
        }
        let found = self.descendants()?.len();
        let started = clock::now();
        let asked_before = self.bell.stops.count();
        self.signal_all(Signal::TERM)?;
        while !self.all_gone()? {
            let waited = started.elapsed();
            let overdue = waited >= grace || self.bell.stops.count() > asked_before;
            if overdue {
                self.signal_all(Signal::KILL)?;
            }
            if waited >= grace * 10 {
                // All of them, also one that only looks ended: the kernel says that it is not.
                let remaining = children_of(us(), &self.left_out.borrow(), &processes()?);
                return Ok(Leftovers { found, remaining });
            }
            // The end of a descendant that is no child of ours makes no event: look again.
            let step = Duration::from_millis(if overdue { 10 } else { 50 });
            self.next(Some(clock::now() + step));
        }
        let remaining = Vec::new();
        Ok(Leftovers { found, remaining })
    }

    /// Has every process of the job ended, threads and all? As the reaper we have no child left
    /// then: the kernel says so, where a look through /proc can miss one that is just being made.
    fn all_gone(&self) -> Result<bool> {
        let (children_left, _) = self.reap(None);
        if !children_left {
            return Ok(true);
        }
        let processes = processes()?;
        // Keepers of jobs within the job are children of ours by now, and stay.
        let others = self.others.borrow();
        let stays = |child: &i32| others.contains(child) || processes.keepers.contains(child);
        let children = processes.children.get(&us());
        if children.into_iter().flatten().any(stays) {
            return Ok(!children_of(us(), &self.left_out.borrow(), &processes)
                .iter()
                .any(|pid| processes.alive.contains(pid)));
        }
        Ok(false)
    }

    /// Sends a signal to all of the job's processes that catch it, and leaves alone those that it would
    /// kill. Returns how many they were.
    ///
    /// # Errors
    /// If /proc cannot be read.
    pub fn signal_those_that_catch(&self, signal: i32) -> Result<usize> {
        let mut count = 0;
        for pid in self.descendants()? {
            let caught = table::signals_of(&pid.as_raw_pid().to_string(), "SigCgt:");
            let catches = caught.is_ok_and(|caught| caught & (1 << (signal - 1)) != 0);
            if let Some(signal) = Signal::from_named_raw(signal).filter(|_| catches) {
                send(pid, signal)?;
                count += 1;
            }
        }
        Ok(count)
    }

    /// All living descendants of this process that a job of ours started.
    fn descendants(&self) -> Result<Vec<Pid>> {
        let processes = processes()?;
        let alive = |pid: &i32| processes.alive.contains(pid);
        let found = children_of(us(), &self.left_out.borrow(), &processes);
        Ok(found
            .into_iter()
            .filter(alive)
            .filter_map(Pid::from_raw)
            .collect())
    }

    fn signal_all(&self, signal: Signal) -> Result<()> {
        for pid in self.descendants()? {
            send(pid, signal)?;
        }
        Ok(())
    }

    /// Reaps all children that have ended. Tells whether there are others, and how `wanted` did if it
    /// was among them, or was left out and has ended before.
    fn reap(&self, wanted: Option<Pid>) -> (bool, Option<Ended>) {
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
        (
            children_left,
            wanted.and_then(|wanted| ended.remove(&wanted)),
        )
    }

    /// The next event; `None` when the deadline has passed first.
    fn next(&self, deadline: Option<std::time::Instant>) -> Option<i32> {
        let Some(deadline) = deadline else {
            return self.receiver.recv().ok();
        };
        let left = deadline.saturating_duration_since(clock::now());
        self.receiver.recv_timeout(left).ok()
    }
}

/// The number of a signal that is named, with or without SIG, or numbered.
#[must_use]
pub fn signal_number(name: &str) -> Option<i32> {
    let name = name.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    let named = |signal: &i32| {
        let found = signal_hook::low_level::signal_name(*signal);
        found.and_then(|found| found.strip_prefix("SIG")) == Some(name)
    };
    let numbered = |signal: &i32| name.parse() == Ok(*signal);
    (1..32).find(|signal| named(signal) || numbered(signal))
}

/// Starts a job in a process group of its own, so that a Ctrl-C at the terminal reaches us alone.
///
/// # Errors
/// If it cannot be started.
pub fn start_job(mut command: Command) -> Result<Job> {
    command.process_group(0);
    start(command, false)
}

/// Starts a job in our own process group, where it may read from the terminal, and a Ctrl-C reaches
/// both.
///
/// # Errors
/// If it cannot be started.
pub fn start_beside_us(command: Command) -> Result<Job> {
    start(command, true)
}

fn start(mut command: Command, in_our_group: bool) -> Result<Job> {
    let path = Path::new(command.get_program()).to_owned();
    let child = on(command.spawn(), "run", &path)?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let no_pid = || std::io::Error::other("no pid");
    let pid = on(pid.ok_or_else(no_pid), "run", &path)?;
    Ok(Job {
        pid,
        in_our_group,
        tells: false,
    })
}

fn us() -> i32 {
    rustix::process::getpid().as_raw_pid()
}

/// Sends a signal; a process that is gone, or that we may not signal, is left alone.
fn send(pid: Pid, signal: Signal) -> Result<()> {
    match rustix::process::kill_process(pid, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH | rustix::io::Errno::PERM) => Ok(()),
        Err(error) => {
            let path = format!("process {}", pid.as_raw_pid());
            on(Err(error), "end", Path::new(&path))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let events = Caught::listen().expect("listen").watch(None);
        let grace = Duration::from_secs(20);
        let go_on = |_: &Events| Ok(Step::GoOn(None));
        for (script, ended) in [
            ("exit 7", Ended::Exit(7)),
            ("kill -9 $$", Ended::Signal(9)),
            ("sleep 300 & (setsid sleep 300 &) ; exit 0", Ended::Exit(0)),
        ] {
            let job = start_job(shell(script)).expect("start");
            let (found, asked) = events.wait(job, |_| grace, go_on).expect("wait");
            assert_eq!((found, asked), (ended, None), "{script}");
        }
        let two = Leftovers {
            found: 2,
            remaining: Vec::new(),
        };
        assert_eq!(events.end_leftovers(grace).expect("end"), two);
        assert_eq!(
            events.end_leftovers(grace).expect("end"),
            Leftovers::default()
        );

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
        assert_eq!(
            (found, asked),
            (Ended::Signal(9), Some(Asked::Signal(SIGINT)))
        );
        assert_eq!(events.stops().count(), 1);

        let missing = start_job(command("/no/such")).expect_err("missing");
        assert!(
            missing
                .to_string()
                .starts_with("cannot run /no/such: No such file")
        );
    }
}
