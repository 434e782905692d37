//! The connection to the agent of one node: a launcher such as `ssh` or `srun` starts the agent, and
//! its standard input and output carry the messages. Never decides what is asked, and never waits for a
//! node to read.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdin, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use forebay_host::process::{Group, SERVES_JOB_VARIABLE, command};
use forebay_host::{clock, threads};
use parking_lot::Mutex;

use crate::agent::protocol::{Answer, Envelope, MESSAGE_BYTES_MAX, PROTOCOL_VERSION, Request};

/// The part of the launcher's standard error that is reported.
const LAUNCHER_BYTES_MAX: u64 = 4096;
/// A node that sent nothing for so long is asked whether it is there.
const PING_AFTER: Duration = Duration::from_secs(2);

/// An agent with a thread that waits for a mount cannot end. Its launcher is killed after so long, and left after twice
/// that.
const END_MAX: Duration = Duration::from_secs(15);

/// An answer, or none if the connection was lost first.
type Reply = Option<Answer>;
/// Who waits for answers, by number of the request; none after the connection is lost.
type Waiting = Arc<Mutex<Option<HashMap<u64, mpsc::Sender<Reply>>>>>;

/// The connection to an agent.
pub(crate) struct Connection {
    group: Mutex<Option<Group>>,
    pid: i32,
    /// Lines for the thread that writes to the launcher.
    input: Mutex<Option<mpsc::Sender<Vec<u8>>>>,
    waiting: Waiting,
    heard: Arc<Mutex<Heard>>,
    number: AtomicU64,
    /// What the launcher printed.
    printed: Arc<Mutex<String>>,
}

/// When the agent was heard.
struct Heard {
    last: Instant,
    /// The first ping after that.
    pinged: Option<Instant>,
}

impl Heard {
    fn now() -> Self {
        Self { last: clock::now(), pinged: None }
    }
}

/// A request that was sent.
pub(crate) struct Sent(mpsc::Receiver<Reply>);

impl Sent {
    /// The answer within `time_max`.
    ///
    /// # Errors
    /// If it does not arrive, or the connection was lost.
    pub(crate) fn answer(&self, time_max: Duration) -> Result<Answer, String> {
        match self.0.recv_timeout(time_max) {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) | Err(mpsc::RecvTimeoutError::Disconnected) => {
                Err("the connection was lost".to_owned())
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {
                Err(format!("it does not answer within {} s", time_max.as_secs()))
            }
        }
    }

    /// The answer, if it has arrived.
    pub(crate) fn poll(&self) -> Option<Result<Answer, String>> {
        match self.0.try_recv() {
            Ok(Some(answer)) => Some(Ok(answer)),
            Err(mpsc::TryRecvError::Empty) => None,
            Ok(None) | Err(mpsc::TryRecvError::Disconnected) => {
                Some(Err("the connection was lost".to_owned()))
            }
        }
    }
}

impl Connection {
    /// Starts the agent with this command line.
    ///
    /// # Errors
    /// If the launcher cannot be started.
    pub(crate) fn start(words: &[OsString]) -> forebay_host::Result<Self> {
        let mut launcher = command(words.first().cloned().unwrap_or_default());
        launcher.args(words.get(1..).unwrap_or_default()).env(SERVES_JOB_VARIABLE, "1");
        launcher.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut group = Group::start(launcher)?;
        let (pipe, output, errors) = group.take_pipes();
        let (input, lines) = mpsc::channel();
        let heard = Arc::new(Mutex::new(Heard::now()));
        let waiting: Waiting = Arc::new(Mutex::new(Some(HashMap::new())));
        let printed = Arc::new(Mutex::new(String::new()));
        let pid = group.process_id();
        let connection = Self {
            group: Mutex::new(Some(group)),
            pid,
            input: Mutex::new(Some(input)),
            waiting: Arc::clone(&waiting),
            heard: Arc::clone(&heard),
            number: AtomicU64::new(1),
            printed: Arc::clone(&printed),
        };
        if let Some(errors) = errors {
            threads::spawn(move || {
                let mut errors = BufReader::new(errors.take(LAUNCHER_BYTES_MAX));
                let mut line = String::new();
                while errors.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
                    printed.lock().push_str(&line);
                    line.clear();
                }
                std::io::copy(&mut errors.into_inner().into_inner(), &mut std::io::sink()).ok();
            })?;
        }
        if let Some(pipe) = pipe {
            threads::spawn(move || write(pipe, &lines))?;
        }
        if let Some(output) = output {
            threads::spawn(move || receive(BufReader::new(output), &waiting, &heard))?;
        }
        Ok(connection)
    }

    /// Sends a request.
    pub(crate) fn send(&self, message: &Request) -> Sent {
        let (sender, receiver) = mpsc::channel();
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let envelope = Envelope { version: PROTOCOL_VERSION, number, message };
        let registered = match self.waiting.lock().as_mut() {
            Some(waiting) => waiting.insert(number, sender).is_none(),
            None => false,
        };
        if let (true, Some(input), Ok(mut line)) =
            (registered, self.input.lock().as_ref(), serde_json::to_vec(&envelope))
        {
            line.push(b'\n');
            input.send(line).ok(); // the reader notices the end
        }
        Sent(receiver)
    }

    /// How long the agent has left a ping without an answer. A connection that was lost is not silent: the node may live.
    pub(crate) fn silence(&self) -> Duration {
        if self.waiting.lock().is_none() {
            return Duration::ZERO;
        }
        {
            let mut heard = self.heard.lock();
            if let Some(since) = heard.pinged {
                return since.elapsed();
            }
            if heard.last.elapsed() < PING_AFTER {
                return Duration::ZERO;
            }
            heard.pinged = Some(clock::now());
        }
        drop(self.send(&Request::Ping)); // only that something arrives matters
        Duration::ZERO
    }

    /// The process of the launcher here.
    pub(crate) fn launcher_pid(&self) -> i32 {
        self.pid
    }

    /// What the launcher printed, for an error.
    pub(crate) fn printed(&self) -> String {
        self.printed.lock().trim().to_owned()
    }

    /// Closes the connection. The launcher ends, and the agent if nothing is left of the job.
    pub(crate) fn close(&self, kills: bool) {
        self.input.lock().take();
        if let Some(mut group) = self.group.lock().take() {
            end(&mut group, kills, END_MAX);
        }
    }
}

/// Reaps a launcher that ends by itself within this time, unless it is killed at once. How it ended changes nothing.
fn end(group: &mut Group, kills: bool, time_max: Duration) {
    if kills || !group.reap_within(time_max).unwrap_or(true) {
        group.process_group_id().end(true);
        group.reap_within(time_max).ok();
    }
}

/// Writes lines until none can follow. The launcher sees the end then.
fn write(mut pipe: ChildStdin, lines: &mpsc::Receiver<Vec<u8>>) {
    for line in lines {
        if pipe.write_all(&line).and_then(|()| pipe.flush()).is_err() {
            return; // the reader notices the end
        }
    }
}

fn receive(mut output: impl BufRead, waiting: &Waiting, heard: &Mutex<Heard>) {
    loop {
        let mut line = Vec::new();
        let read = Read::take(&mut output, MESSAGE_BYTES_MAX as u64).read_until(b'\n', &mut line);
        if !matches!(read, Ok(bytes) if bytes > 0) {
            break;
        }
        // A login shell may print before the agent starts.
        let Ok(envelope) = serde_json::from_slice::<Envelope<Answer>>(&line) else { continue };
        if envelope.version != PROTOCOL_VERSION {
            break;
        }
        *heard.lock() = Heard::now();
        let sender = waiting.lock().as_mut().and_then(|all| all.remove(&envelope.number));
        if let Some(sender) = sender {
            sender.send(Some(envelope.message)).ok(); // who asked may have given up
        }
    }
    let senders = waiting.lock().take().unwrap_or_default();
    senders.into_values().for_each(|sender| drop(sender.send(None)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launcher_whose_agent_does_not_end_is_killed() {
        let mut launcher = command("sleep");
        launcher.arg("1000");
        let mut group = Group::start(launcher).expect("sleep");
        assert!(!group.reap_within(Duration::from_millis(20)).expect("it runs"));
        end(&mut group, false, Duration::from_millis(20));
        assert!(group.reap_within(Duration::from_secs(60)).expect("it was killed"));
    }
}
