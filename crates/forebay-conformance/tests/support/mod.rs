//! Nodes whose workers are processes of the test, with faults if asked for.

use std::io::{BufReader, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use forebay_conformance::{
    Connection, Node, Operation, Options, Outcome, Reply, Report, Worker, run, serve_with,
};

/// Replies in place of the worker.
pub type Fault = Box<dyn FnMut(&mut Worker, &Operation) -> Reply>;

/// The worker of a test; the drop kills it.
struct Process(i32);

impl Drop for Process {
    fn drop(&mut self) {
        // SAFETY: a child of this process that nobody else waits for.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, std::ptr::null_mut(), 0);
        }
    }
}

/// A node whose worker answers through `fault`. Each start of the worker calls `fault` again.
pub fn node(name: &str, mut fault: impl FnMut() -> Fault + 'static) -> Node {
    let connect = move || {
        let (ours, theirs) = UnixStream::pair().map_err(|error| error.to_string())?;
        let fault = fault();
        // SAFETY: the child uses only its socket and the file system, and ends without returning.
        match unsafe { libc::fork() } {
            -1 => Err(std::io::Error::last_os_error().to_string()),
            0 => {
                drop(ours);
                serve_and_exit(theirs, fault)
            }
            pid => {
                let input = ours.try_clone().map_err(|error| error.to_string())?;
                let guard = Box::new(Process(pid));
                Ok(Connection { input: Box::new(input), output: Box::new(ours), guard })
            }
        }
    };
    Node::new(name, Box::new(connect))
}

fn serve_and_exit(stream: UnixStream, mut fault: Fault) -> ! {
    let stream = OwnedFd::from(stream);
    if let Ok(input) = stream.as_fd().try_clone_to_owned() {
        let mut worker = Worker::default();
        let (input, output) = (UnixStream::from(input), UnixStream::from(stream));
        let answer = |operation: &Operation| fault(&mut worker, operation);
        serve_with(BufReader::new(input), Flushed(output), answer).ok();
    }
    // SAFETY: ends the process without running what belongs to the test.
    unsafe { libc::_exit(0) }
}

/// Whole lines in one write, as a worker's standard output has them.
struct Flushed(UnixStream);

impl Write for Flushed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// A node that tells the truth.
#[allow(dead_code, reason = "not each test has a use for it")]
pub fn honest(name: &str) -> Node {
    node(name, || Box::new(|worker, operation| worker.answer(operation)))
}

/// All checks, or those of `only`.
#[allow(dead_code, reason = "not each test has a use for it")]
pub fn report(mut nodes: Vec<Node>, directory: &Path, repetitions: u64, only: &[&str]) -> Report {
    let only = only.iter().map(|name| (*name).to_owned()).collect();
    let options = Options { repetitions, only, ..Options::default() };
    let directory = directory.to_str().expect("path").as_bytes();
    run(&mut nodes, directory, &options, &mut |_| true).expect("run")
}

/// The names of the checks with an outcome.
#[allow(dead_code, reason = "not each test has a use for it")]
pub fn names(report: &Report, is: fn(&Outcome) -> bool) -> Vec<&str> {
    report.checks.iter().filter(|check| is(&check.outcome)).map(|check| check.name).collect()
}

#[allow(dead_code, reason = "not each test has a use for it")]
pub fn is_broken(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Broken { .. })
}
