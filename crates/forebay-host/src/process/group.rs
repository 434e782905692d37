//! Runs a command in its own process group. Dropping it does not end the command.
//! Assumes that a caller ends the group before it reaps the command: later the number may be another group's.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use super::ended::ExitStatus;
use crate::{Result, clock, with_context};

/// How often a command is looked at that has a time limit.
const LOOK: Duration = Duration::from_millis(1);

/// A running command.
#[derive(Debug)]
pub struct Group {
    child: Child,
    pid: Pid,
}

/// The ID of a process group, to end it before it is reaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessGroupId(Pid);

impl Group {
    /// Starts a command in a new process group.
    pub fn start(mut command: Command) -> Result<Self> {
        let path = Path::new(command.get_program()).to_owned();
        let child = with_context(command.process_group(0).spawn(), "run", &path)?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let no_pid = || std::io::Error::other("no pid");
        let pid = with_context(pid.ok_or_else(no_pid), "run", &path)?;
        Ok(Self { child, pid })
    }

    /// The pipes to the command, if it was started with pipes. Each can be taken once.
    pub fn take_pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
        (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take())
    }

    /// The process ID of the command.
    pub fn process_id(&self) -> i32 {
        self.pid.as_raw_pid()
    }

    /// The ID, to end the group from another thread.
    pub fn process_group_id(&self) -> ProcessGroupId {
        ProcessGroupId(self.pid)
    }

    /// Waits for the command to end. Does not reap it, so its PID is not reused.
    pub fn wait(&self) -> Result<()> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        loop {
            match rustix::process::waitid(WaitId::Pid(self.pid), options) {
                Err(Errno::INTR) => {}
                waited => {
                    return with_context(waited, "wait for", Path::new("a command")).map(drop);
                }
            }
        }
    }

    /// Reaps the command if it ends within this time. One that waits in the kernel survives SIGKILL.
    pub fn reap_within(&mut self, time_max: Duration) -> Result<bool> {
        let began = clock::now();
        loop {
            let ended = with_context(self.child.try_wait(), "wait for", Path::new("a command"))?;
            if ended.is_some() || began.elapsed() >= time_max {
                return Ok(ended.is_some());
            }
            clock::sleep(LOOK);
        }
    }

    /// Reaps the command and returns how it ended. The PID may be reused from now on.
    pub fn reap(mut self) -> Result<ExitStatus> {
        use std::os::unix::process::ExitStatusExt;
        let status = with_context(self.child.wait(), "wait for", Path::new("a command"))?;
        let signal = || ExitStatus::Signal(status.signal().unwrap_or_default());
        Ok(status.code().map_or_else(signal, ExitStatus::Exit))
    }
}

impl ProcessGroupId {
    /// Sends SIGTERM or, with `at_once`, SIGKILL to all processes of the group.
    pub fn end(self, at_once: bool) {
        let signal = if at_once { Signal::KILL } else { Signal::TERM };
        rustix::process::kill_process_group(self.0, signal).ok(); // the group may have ended
    }
}
