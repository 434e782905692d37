//! Starts programs.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::process::Pid;

use crate::{Result, on};

/// A job that was started.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    pub(super) pid: Pid,
    /// A terminal's signals reach it without us.
    pub(super) in_our_group: bool,
    pub(super) tells: bool,
}

/// A program to be started with [`Command`]'s own options.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

/// Leaves the terminal and its session, so that neither its end nor its keys reach us. Not for a process
/// that leads a group.
pub fn leave_session() {
    rustix::process::setsid().ok(); // whoever leads a group has left it already
}

/// Replaces this process by the command.
pub fn replace_by(mut command: Command) -> crate::Error {
    let source = command.exec();
    let path = Path::new(command.get_program()).to_owned();
    crate::Error { operation: "run", path, source }
}

/// Starts a job in a process group of its own, so that a Ctrl-C at the terminal reaches us alone.
pub fn start_job(mut command: Command) -> Result<Job> {
    command.process_group(0);
    start(command, false)
}

/// Starts a job in our own process group, where it may read from the terminal, and a Ctrl-C reaches
/// both.
pub fn start_in_our_group(command: Command) -> Result<Job> {
    start(command, true)
}

fn start(mut command: Command, in_our_group: bool) -> Result<Job> {
    let path = Path::new(command.get_program()).to_owned();
    let child = on(command.spawn(), "run", &path)?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let no_pid = || std::io::Error::other("no pid");
    let pid = on(pid.ok_or_else(no_pid), "run", &path)?;
    Ok(Job { pid, in_our_group, tells: false })
}
