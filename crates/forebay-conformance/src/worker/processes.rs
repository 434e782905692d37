//! Other processes of the node: children of the worker.
//! Assumes that the worker has one thread, since it forks. A child ends with it, and only the worker talks to the
//! child.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;

use forebay_host::threads;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, set_parent_process_death_signal};

use super::child::Child;
use super::names::last_errno;
use super::serve_with;
use super::state::{Result, Worker, WorkerError, unknown};
use crate::operation::{Answer, Handle, Operation, Reply};

/// What a worker says of itself.
pub(super) fn facts() -> Answer {
    Answer::Facts {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        pid: std::process::id(),
        user: rustix::process::geteuid().as_raw(),
    }
}

impl Worker {
    pub(super) fn fork(&mut self) -> Result<Answer> {
        let (their_input, input) = pipe_with(PipeFlags::CLOEXEC)?;
        let (output, their_output) = pipe_with(PipeFlags::CLOEXEC)?;
        // SAFETY: a worker has one thread. In a test with several, the child needs none of them: the C
        // library keeps its allocator usable, and the child uses only its pipes.
        match unsafe { libc::fork() } {
            -1 => Err(last_errno().into()),
            0 => {
                drop((input, output));
                self.forget();
                self.serve_parent(their_input, their_output)
            }
            pid => {
                let pid = Pid::from_raw(pid).ok_or(Errno::CHILD)?;
                let output = BufReader::new(File::from(output));
                let handle = self.new_handle();
                self.children.insert(handle, Child { pid, input: File::from(input), output });
                Ok(Answer::Number(handle))
            }
        }
    }

    /// Serves until the parent closes its pipe or ends, and ends this process.
    fn serve_parent(&mut self, input: OwnedFd, output: OwnedFd) -> ! {
        set_parent_process_death_signal(Some(Signal::KILL)).ok(); // the end of the pipe is the other sign
        let (input, output) = (BufReader::new(File::from(input)), File::from(output));
        threads::caught(|| serve_with(input, output, |operation| self.answer(operation)));
        // SAFETY: ends the process without running what belongs to the parent.
        unsafe { libc::_exit(0) }
    }

    pub(super) fn ask_child(&mut self, child: Handle, operation: &Operation) -> Result<Answer> {
        let child = self.children.get_mut(&child).ok_or_else(|| unknown(child))?;
        let lost = |error: &dyn std::fmt::Display| {
            WorkerError::Refused(format!("a child is lost: {error}"))
        };
        let mut line = serde_json::to_string(operation).map_err(|error| lost(&error))?;
        line.push('\n');
        child.input.write_all(line.as_bytes()).map_err(|error| lost(&error))?;
        line.clear();
        child.output.read_line(&mut line).map_err(|error| lost(&error))?;
        match serde_json::from_str(&line).map_err(|error| lost(&error))? {
            Reply::Answer(answer) => Ok(answer),
            Reply::Errno(name) => Err(WorkerError::Named(name)),
            Reply::Refused(reason) => Err(WorkerError::Refused(reason)),
        }
    }

    pub(super) fn kill_child(&mut self, child: Handle) -> Result<Answer> {
        self.children.remove(&child).ok_or_else(|| unknown(child))?.end();
        Ok(Answer::Done)
    }
}
