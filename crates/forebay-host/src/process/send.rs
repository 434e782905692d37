//! Sends signals to processes.

use std::path::Path;

use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use crate::{Result, with_context};

/// The PID of this process.
pub(super) fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_pid()
}

/// Sends a signal. Ignores a process that is gone or that belongs to another user.
pub(super) fn send(pid: Pid, signal: Signal) -> Result<()> {
    match rustix::process::kill_process(pid, signal) {
        Ok(()) | Err(Errno::SRCH | Errno::PERM) => Ok(()),
        Err(error) => {
            let path = format!("process {}", pid.as_raw_pid());
            with_context(Err(error), "end", Path::new(&path))
        }
    }
}
