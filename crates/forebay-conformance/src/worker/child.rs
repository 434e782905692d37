//! A child of the worker.

use std::fs::File;
use std::io::BufReader;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

/// A process that serves its parent through two pipes.
#[derive(Debug)]
pub(super) struct Child {
    pub(super) pid: Pid,
    pub(super) input: File,
    pub(super) output: BufReader<File>,
}

impl Child {
    /// Kills the process and waits until it has ended.
    pub(super) fn end(self) {
        kill_process(self.pid, Signal::KILL).ok(); // it may have ended
        waitpid(Some(self.pid), WaitOptions::empty()).ok(); // it is ours, and was killed
    }
}
