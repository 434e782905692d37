//! How a process ended.

use crate::exit_codes;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// It exited with this status.
    Exit(i32),
    /// This signal ended it.
    Signal(i32),
}

impl ExitStatus {
    /// None if the process has not ended.
    pub(super) fn of(status: rustix::process::WaitStatus) -> Option<Self> {
        let exit = status.exit_status().map(Self::Exit);
        exit.or_else(|| status.terminating_signal().map(Self::Signal))
    }

    /// The status a shell reports: the exit status, or 128 plus the signal.
    pub fn shell_status(self) -> i32 {
        match self {
            Self::Exit(status) => status,
            Self::Signal(signal) => exit_codes::of_signal(signal),
        }
    }
}
