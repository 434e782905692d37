//! Talks to one worker: sends operations and receives answers.
//! Assumes one answer for each request, in order. Never waits for an answer without a limit: a worker that gives none
//! is ended, and the next request starts another.

use std::any::Any;
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use forebay_host::process::{Piped, command};
use forebay_host::{clock, threads};

use crate::operation::{Answer, Operation, Reply};

/// The longest request. It fits into a pipe, so that a worker that does not read blocks nobody.
const REQUEST_BYTES_MAX: usize = 32 << 10;

/// The removal of a tree is thousands of calls: it may take so many times as long as one.
const TREE_CALLS: f64 = 10.0;

/// A connection to a worker that was started.
pub struct Connection {
    /// Its standard output.
    pub input: Box<dyn Read + Send>,
    /// Its standard input.
    pub output: Box<dyn Write + Send>,
    /// What ends the worker when it is dropped.
    pub guard: Box<dyn Any>,
}

/// Starts a worker, again after each one that did not answer; none if it cannot be started again.
pub type Connect = Box<dyn FnMut() -> Result<Connection, String>>;

/// Why an operation has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OperationError {
    /// The system call failed.
    Errno {
        /// As `ENOENT`.
        errno: String,
        /// The operation and the node.
        on: String,
    },
    /// The worker gave no answer within the limit. It was ended.
    NoAnswer {
        /// Its node.
        node: String,
        /// The operation.
        operation: String,
    },
    /// The worker cannot be started, has ended, or says nonsense.
    Lost(String),
}

struct Link {
    output: Box<dyn Write + Send>,
    lines: Receiver<std::io::Result<String>>,
    _guard: Box<dyn Any>,
}

/// A node with its worker.
pub struct Node {
    /// How messages name it.
    pub name: String,
    connect: Connect,
    link: Option<Link>,
    operation_s_max: f64,
    /// The last operation that was sent, and when.
    pub(crate) last: Option<(Instant, Operation)>,
}

impl Node {
    /// A node whose worker is started by `connect` when it is needed.
    pub fn new(name: impl Into<String>, connect: Connect) -> Self {
        Self { name: name.into(), connect, link: None, operation_s_max: 30.0, last: None }
    }

    /// A node whose worker `forebay __conformance worker` is started by a command that ends with the program
    /// `forebay`, such as `ssh n2 forebay`.
    ///
    /// # Errors
    /// If the command is empty or its quotes are not closed.
    pub fn of_command(prefix: &str) -> Result<Self, String> {
        let words = shlex::split(prefix).ok_or_else(|| format!("open quote in: {prefix}"))?;
        let (program, rest) = words.split_first().ok_or("the command is empty")?;
        let (program, mut rest) = (program.clone(), rest.to_vec());
        rest.extend(["__conformance".to_owned(), "worker".to_owned()]);
        let connect = move || {
            let mut started = command(&program);
            started.args(&rest);
            let started = Piped::start(started).map_err(|error| error.to_string())?;
            let (process, output, input) = started;
            Ok(Connection {
                input: Box::new(input),
                output: Box::new(output),
                guard: Box::new(process),
            })
        };
        Ok(Self::new(prefix, Box::new(connect)))
    }

    pub(crate) fn set_limit(&mut self, operation_s_max: f64) {
        self.operation_s_max = operation_s_max;
    }

    /// Carries out an operation.
    ///
    /// # Errors
    /// If the system call fails or the worker does not answer.
    pub fn call(&mut self, operation: &Operation) -> Result<Answer, OperationError> {
        self.send(operation)?;
        self.receive(operation)
    }

    /// Sends an operation, to be followed by [`Node::receive`].
    ///
    /// # Errors
    /// If the worker cannot be started or has ended.
    pub(crate) fn send(&mut self, operation: &Operation) -> Result<(), OperationError> {
        let lost = |name: &str, reason: &dyn std::fmt::Display| {
            OperationError::Lost(format!("{name}: {reason}"))
        };
        let mut line =
            serde_json::to_string(operation).map_err(|error| lost(&self.name, &error))?;
        line.push('\n');
        if line.len() > REQUEST_BYTES_MAX {
            return Err(lost(&self.name, &format!("a request of {} bytes", line.len())));
        }
        if self.link.is_none() {
            self.link = Some(self.start().map_err(|reason| lost(&self.name, &reason))?);
        }
        let Some(link) = &mut self.link else { return Err(lost(&self.name, &"no worker")) };
        self.last = Some((clock::now(), operation.clone()));
        let sent = link.output.write_all(line.as_bytes()).and_then(|()| link.output.flush());
        sent.map_err(|error| {
            self.link = None;
            lost(&self.name, &format!("its worker has ended: {error}"))
        })
    }

    fn start(&mut self) -> Result<Link, String> {
        let Connection { input, output, guard } = (self.connect)()?;
        let (sender, lines) = channel();
        // It ends when the worker does: a transport without a guard must close its streams.
        let reader = threads::spawn(move || {
            for line in BufReader::new(input).lines() {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        reader.map_err(|error| error.to_string())?;
        Ok(Link { output, lines, _guard: guard })
    }

    /// The answer of the operation that was sent.
    ///
    /// # Errors
    /// As [`Node::call`].
    pub(crate) fn receive(&mut self, operation: &Operation) -> Result<Answer, OperationError> {
        let lost = |reason: String| OperationError::Lost(format!("{}: {reason}", self.name));
        let Some(link) = &self.link else { return Err(lost("no worker".to_owned())) };
        let s_max = match operation {
            Operation::RemoveTree { .. } => self.operation_s_max * TREE_CALLS,
            _ => self.operation_s_max,
        };
        let line = link.lines.recv_timeout(Duration::from_secs_f64(s_max));
        let reply = match line {
            Ok(Ok(line)) => serde_json::from_str(&line).map_err(|_| {
                let start: String = line.chars().take(80).collect();
                format!("this is no worker: it writes {start:?}")
            }),
            Ok(Err(error)) => Err(format!("its worker cannot be read: {error}")),
            Err(RecvTimeoutError::Disconnected) => Err("its worker has ended".to_owned()),
            Err(RecvTimeoutError::Timeout) => {
                self.link = None;
                let operation = operation.describe();
                return Err(OperationError::NoAnswer { node: self.name.clone(), operation });
            }
        };
        match reply {
            Ok(Reply::Answer(answer)) => Ok(answer),
            Ok(Reply::Errno(errno)) => {
                let on = format!("{} on {}", operation.describe(), self.name);
                Err(OperationError::Errno { errno, on })
            }
            Ok(Reply::Refused(reason)) => Err(lost(reason)),
            Err(reason) => {
                let failed = lost(reason);
                self.link = None;
                Err(failed)
            }
        }
    }
}
