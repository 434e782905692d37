//! A worker: carries out operations on one node.
//!
//! It tests the file system itself, so it makes system calls directly, which other crates leave to
//! `forebay-host`: each operation is the system call that it names, and its answer is what the call gave. A
//! worker is one process with one thread, which [`Operation::Fork`] relies on.

mod child;
mod errno;
mod files;
mod locks;
mod loops;
mod maps;
mod names;
mod processes;
mod state;

pub(crate) use loops::record;

use std::io::{self, BufRead, Write};

use crate::operation::{Answer, Operation, Reply};
pub use state::Worker;
use state::{Result, WorkerError};

/// The umask of each trial.
const MASK: u32 = 0o022;

/// Reads operations, one a line, and writes a reply to each, until the input ends.
///
/// # Errors
/// If the input cannot be read or the output cannot be written.
pub fn serve(input: impl BufRead, output: impl Write) -> io::Result<()> {
    let mut worker = Worker::default();
    serve_with(input, output, |operation| worker.answer(operation))
}

/// As [`serve`], with replies of the caller.
///
/// # Errors
/// As [`serve`].
pub fn serve_with(
    mut input: impl BufRead,
    mut output: impl Write,
    mut answer: impl FnMut(&Operation) -> Reply,
) -> io::Result<()> {
    let mut line = String::new();
    loop {
        line.clear();
        if input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let reply = match serde_json::from_str(&line) {
            Ok(operation) => answer(&operation),
            Err(error) => Reply::Refused(format!("no operation: {error}")),
        };
        let mut text = serde_json::to_string(&reply).map_err(io::Error::other)?;
        text.push('\n');
        output.write_all(text.as_bytes())?;
        output.flush()?;
    }
}

impl Worker {
    /// Carries out an operation.
    pub fn answer(&mut self, operation: &Operation) -> Reply {
        match self.execute(operation) {
            Ok(answer) => Reply::Answer(answer),
            Err(WorkerError::Errno(errno)) => Reply::Errno(errno::name(errno)),
            Err(WorkerError::Named(name)) => Reply::Errno(name),
            Err(WorkerError::Refused(reason)) => Reply::Refused(reason),
        }
    }

    fn execute(&mut self, operation: &Operation) -> Result<Answer> {
        match operation {
            Operation::Hello => Ok(processes::facts()),
            Operation::Begin { path } => {
                self.reset();
                self.base = path.0.clone();
                rustix::process::umask(MASK.into());
                Ok(Answer::Done)
            }
            Operation::Fork => self.fork(),
            Operation::Child { child, operation } => self.ask_child(*child, operation),
            Operation::KillChild { child } => self.kill_child(*child),
            Operation::Loop { steps } => self.run_loop(steps),
            _ => self.execute_on_file(operation),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replies(input: &str) -> Vec<Reply> {
        let mut output = Vec::new();
        serve(input.as_bytes(), &mut output).expect("serve");
        let text = String::from_utf8(output).expect("text");
        text.lines().map(|line| serde_json::from_str(line).expect("reply")).collect()
    }

    #[test]
    fn worker_refuses_what_it_does_not_understand_and_goes_on() {
        let lines = "nonsense\n{\"call\":\"close\",\"handle\":7}\n{\"call\":\"hello\"}\n";
        let replies = replies(lines);
        assert!(
            matches!(&replies[0], Reply::Refused(reason) if reason.starts_with("no operation"))
        );
        assert_eq!(replies[1], Reply::Refused("there is no handle 7".to_owned()));
        assert!(matches!(replies[2], Reply::Answer(Answer::Facts { .. })));
    }

    #[test]
    fn worker_names_the_errno() {
        let replies = replies("{\"call\":\"stat\",\"path\":\"/no/such\"}\n");
        assert_eq!(replies, [Reply::Errno("ENOENT".to_owned())]);
    }

    #[test]
    fn child_is_another_process_and_its_locks_end_with_it() {
        use crate::operation::{Flag, Lock};
        let scratch = tempfile::tempdir().expect("tempdir");
        let mut worker = Worker::default();
        let mut ask = |operation| match worker.answer(&operation) {
            Reply::Answer(answer) => answer,
            other => panic!("{operation:?}: {other:?}"),
        };
        ask(Operation::Begin { path: scratch.path().to_str().expect("path").into() });
        let flags = vec![Flag::ReadWrite, Flag::Create];
        let open = Operation::Open { path: "f".into(), flags, mode: 0o644 };
        let Answer::Number(handle) = ask(open.clone()) else { panic!("no handle") };
        let Answer::Number(child) = ask(Operation::Fork) else { panic!("no child") };
        let mut in_child =
            |operation| ask(Operation::Child { child, operation: Box::new(operation) });
        let Answer::Number(of_child) = in_child(open) else { panic!("no handle") };
        let lock = |handle| Operation::RecordLock {
            handle,
            lock: Lock::Exclusive,
            offset: 0,
            bytes: 0,
            wait: false,
        };
        assert_eq!(in_child(lock(of_child)), Answer::Done);
        assert_eq!(worker.answer(&lock(handle)), Reply::Errno("EAGAIN".to_owned()));
        assert_eq!(worker.answer(&Operation::KillChild { child }), Reply::Answer(Answer::Done));
        assert_eq!(worker.answer(&lock(handle)), Reply::Answer(Answer::Done));
    }
}
