//! Processes and signals.
//!
//! The process that calls [`Events::listen`] becomes the reaper of all its descendants: whatever a
//! job leaves behind is found and ended, as a scheduler's process tracking does. Nothing here
//! polls while a job runs: the end of a process and a signal to us arrive as events.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::{Result, clock, files, on};

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It returned this exit status.
    Exit(i32),
    /// This signal killed it.
    Signal(i32),
}

impl Ended {
    /// The status a shell would report: the exit status, or 128 and the signal.
    #[must_use]
    pub fn shell_status(self) -> i32 {
        match self {
            Self::Exit(status) => status,
            Self::Signal(signal) => 128 + signal,
        }
    }
}

/// Signals that ask us to stop, and ends of children, as they come.
pub struct Events {
    receiver: mpsc::Receiver<i32>,
    stops: Stops,
}

/// How often we were asked to stop (SIGINT, SIGTERM, SIGHUP).
#[derive(Debug, Clone, Default)]
pub struct Stops(Arc<AtomicUsize>);

impl Stops {
    /// The count so far.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// A job that was started.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    pid: Pid,
}

/// A program to be started with [`Command`]'s own options.
#[must_use]
pub fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
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

impl Events {
    /// Catches SIGINT, SIGTERM and SIGHUP from here on, and becomes the reaper of all descendants.
    ///
    /// # Errors
    /// If the kernel refuses either.
    pub fn listen() -> Result<Self> {
        let here = Path::new("this process");
        on(
            rustix::process::set_child_subreaper(Some(rustix::process::getpid())),
            "become the reaper of the children of",
            here,
        )?;
        let caught = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGCHLD]);
        let mut signals = on(caught, "catch the signals of", here)?;
        let (sender, receiver) = mpsc::channel();
        let stops = Stops::default();
        let counter = stops.clone();
        std::thread::spawn(move || {
            for signal in signals.forever() {
                if signal != SIGCHLD {
                    counter.0.fetch_add(1, Ordering::SeqCst);
                }
                if sender.send(signal).is_err() {
                    return;
                }
            }
        });
        Ok(Self { receiver, stops })
    }

    /// The count of signals that asked us to stop, to be watched from any thread.
    #[must_use]
    pub fn stops(&self) -> Stops {
        self.stops.clone()
    }

    /// Waits for the job to end. When we are asked to stop, all its processes get SIGTERM; asked
    /// again or after `grace` they get SIGKILL. Returns also the first signal that asked us.
    ///
    /// # Errors
    /// If /proc cannot be read.
    pub fn wait(&self, job: Job, grace: Duration) -> Result<(Ended, Option<i32>)> {
        let mut asked = None;
        let mut deadline = None;
        loop {
            if let Some(ended) = reap(Some(job.pid)) {
                return Ok((ended, asked));
            }
            match self.next(deadline) {
                Some(SIGCHLD) => {}
                Some(signal) if asked.is_none() => {
                    asked = Some(signal);
                    deadline = Some(clock::now() + grace);
                    signal_all(Signal::TERM)?;
                }
                _ => {
                    signal_all(Signal::KILL)?;
                    deadline = Some(clock::now() + Duration::from_millis(100));
                }
            }
        }
    }

    /// Ends every descendant that is left: SIGTERM, and SIGKILL after `grace`. Returns how many
    /// there were at first.
    ///
    /// # Errors
    /// If /proc cannot be read.
    pub fn end_leftovers(&self, grace: Duration) -> Result<usize> {
        reap(None);
        let found = descendants()?.len();
        if found == 0 {
            return Ok(0);
        }
        signal_all(Signal::TERM)?;
        let deadline = clock::now() + grace;
        loop {
            reap(None);
            if descendants()?.is_empty() {
                return Ok(found);
            }
            let overdue = clock::now() >= deadline;
            if overdue {
                signal_all(Signal::KILL)?;
            }
            // A descendant of a descendant may die unseen by us: look again now and then.
            let step = Duration::from_millis(if overdue { 10 } else { 50 });
            self.next(Some(clock::now() + step));
        }
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

/// Starts a job in a process group of its own, so that a Ctrl-C at the terminal reaches us alone.
///
/// # Errors
/// If it cannot be started.
pub fn start_job(mut command: Command) -> Result<Job> {
    let path = Path::new(command.get_program()).to_owned();
    let child = on(command.process_group(0).spawn(), "run", &path)?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = on(
        pid.ok_or_else(|| std::io::Error::other("no pid")),
        "run",
        &path,
    )?;
    Ok(Job { pid })
}

/// Reaps all children that have ended; tells how `wanted` did if it was among them.
fn reap(wanted: Option<Pid>) -> Option<Ended> {
    let mut found = None;
    while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
        if Some(pid) == wanted {
            found = status
                .exit_status()
                .map(Ended::Exit)
                .or_else(|| status.terminating_signal().map(Ended::Signal));
        }
    }
    found
}

/// All living descendants of this process.
fn descendants() -> Result<Vec<Pid>> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for name in files::names_in(Path::new("/proc"))? {
        let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        // A process may end while we look: its file is gone then, and so is the process.
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
            continue;
        };
        if let Some(parent) = living_parent(&stat) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut open = vec![rustix::process::getpid().as_raw_nonzero().get()];
    while let Some(parent) = open.pop() {
        for &child in children.get(&parent).into_iter().flatten() {
            open.push(child);
            found.extend(Pid::from_raw(child));
        }
    }
    Ok(found)
}

/// Parent in a /proc/PID/stat line; none for a process that is only waiting to be reaped.
fn living_parent(stat: &str) -> Option<i32> {
    let (_, behind_the_name) = stat.rsplit_once(") ")?;
    let mut fields = behind_the_name.split(' ');
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    (state != "Z" && state != "X").then_some(parent)
}

fn signal_all(signal: Signal) -> Result<()> {
    for pid in descendants()? {
        match rustix::process::kill_process(pid, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => {
                let path = format!("process {}", pid.as_raw_nonzero());
                return on(Err(error), "end", Path::new(&path));
            }
        }
    }
    Ok(())
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
        let events = Events::listen().expect("listen");
        let grace = Duration::from_secs(20);
        for (script, ended) in [
            ("exit 7", Ended::Exit(7)),
            ("kill -9 $$", Ended::Signal(9)),
            ("sleep 300 & (setsid sleep 300 &) ; exit 0", Ended::Exit(0)),
        ] {
            let job = start_job(shell(script)).expect("start");
            let (found, asked) = events.wait(job, grace).expect("wait");
            assert_eq!((found, asked), (ended, None), "{script}");
        }
        assert_eq!(events.end_leftovers(grace).expect("end"), 2);
        assert_eq!(events.end_leftovers(grace).expect("end"), 0);

        let stubborn = shell("trap '' TERM; sleep 300 & while :; do wait; done");
        let job = start_job(stubborn).expect("start");
        let us = rustix::process::getpid();
        rustix::process::kill_process(us, Signal::INT).expect("kill");
        let (found, asked) = events.wait(job, Duration::from_millis(200)).expect("wait");
        assert_eq!((found, asked), (Ended::Signal(9), Some(SIGINT)));
        assert_eq!(events.stops().count(), 1);

        let missing = start_job(command("/no/such")).expect_err("missing");
        assert!(
            missing
                .to_string()
                .starts_with("cannot run /no/such: No such file")
        );
    }
}
