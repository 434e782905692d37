//! Starts programs.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::process::Pid;

use crate::{Result, with_context};

/// A started job.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    pub(super) pid: Pid,
    /// It gets signals of the terminal directly.
    pub(super) in_our_group: bool,
    pub(super) tells: bool,
}

/// A [`Command`] for this program.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

/// Leaves the session of the terminal, so that its end and its keys send no signals to this
/// process. Fails silently for the leader of a process group.
pub fn leave_session() {
    rustix::process::setsid().ok(); // a group leader has left the session already
}

/// Replaces this process by the command. Returns only on failure.
pub fn replace_by(mut command: Command) -> crate::Error {
    let source = command.exec();
    let path = Path::new(command.get_program()).to_owned();
    crate::Error { operation: "run", path, source }
}

/// Ends this process without exit handlers, for which a library's threads or locks might not be ready.
pub fn exit_at_once(code: i32) -> ! {
    // SAFETY: takes no pointers and does not return.
    unsafe { libc::_exit(code) }
}

/// Starts a job in its own process group, so that a Ctrl-C at the terminal reaches only Forebay.
pub fn start_job(mut command: Command) -> Result<Job> {
    command.process_group(0);
    start(command, false)
}

/// Starts a job in the process group of Forebay. The job can read from the terminal, and a Ctrl-C
/// reaches both.
pub fn start_in_our_group(command: Command) -> Result<Job> {
    start(command, true)
}

fn start(mut command: Command, in_our_group: bool) -> Result<Job> {
    let path = Path::new(command.get_program()).to_owned();
    let child = with_context(command.spawn(), "run", &path)?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let no_pid = || std::io::Error::other("no pid");
    let pid = with_context(pid.ok_or_else(no_pid), "run", &path)?;
    Ok(Job { pid, in_our_group, tells: false })
}
