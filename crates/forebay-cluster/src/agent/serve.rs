//! The agent of a node: `forebay __node`. Reads requests from standard input and answers on standard
//! output. Ends itself and what it started when no message arrives for longer than the limit.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use forebay_engine::{EngineStep, HostFacts};
use forebay_host::{clock, process, system, threads};
use parking_lot::Mutex;
use serde_json::Value;

use super::node::Node;
use super::probe::{Probe, answers};
use super::processes::{NodePlace, Process, wait_until_ready};
use super::protocol::{Answer, Envelope, MESSAGE_BYTES_MAX, PROTOCOL_VERSION, Request};

/// A task stops when nothing was heard for so long: `forebay run` sends pings while it waits, and gives the task to
/// another node later than this.
const TASK_SILENT_MAX: Duration = Duration::from_secs(10);
/// The time for the first message.
const FIRST_MAX: Duration = Duration::from_secs(60);

/// The node, once its directory is known. Requests for steps are carried out at the same time.
type SharedNode = Arc<Mutex<Option<Node>>>;

/// Starts the process of a step, or finds it.
type Begin = fn(&mut Node, &EngineStep) -> Result<Option<Process>, String>;

/// Answers a task that the program of the agent adds. It stops when the function returns false.
pub type TaskHandler = fn(Value, &(dyn Fn() -> bool + Sync)) -> Result<Value, String>;

/// What the requests share.
struct Agent {
    node: SharedNode,
    /// When the last message arrived; none after the end of the connection.
    heard: Arc<Mutex<Option<Instant>>>,
    task: TaskHandler,
    probe: Probe,
}

/// Serves until standard input ends and nothing is left to stop, or until the connection is lost for
/// longer than its limit. Returns the exit code.
pub fn serve(task: TaskHandler) -> i32 {
    // A scheduler that ends a job sends SIGTERM to all its processes. The job's files are staged out after it.
    if let Err(error) = process::postpone_scheduler_signals() {
        eprintln!("forebay: {error}");
        return 1;
    }
    let agent =
        Agent { node: SharedNode::default(), heard: Arc::default(), task, probe: Probe::default() };
    let (sender, lines) = mpsc::channel();
    let heard = Arc::clone(&agent.heard);
    let reader = threads::spawn(move || {
        let input = std::io::stdin().lock();
        let mut input = std::io::BufReader::new(input);
        loop {
            let mut line = Vec::new();
            let read = std::io::Read::take(&mut input, MESSAGE_BYTES_MAX as u64)
                .read_until(b'\n', &mut line);
            let is_end = !matches!(read, Ok(bytes) if bytes > 0);
            *heard.lock() = (!is_end).then(clock::now);
            if is_end || sender.send(line).is_err() {
                return;
            }
        }
    });
    if let Err(error) = reader {
        eprintln!("forebay: {error}");
        return 1;
    }
    let mut lost_max = FIRST_MAX;
    loop {
        match lines.recv_timeout(lost_max) {
            Ok(line) => {
                if let Some(limit) = handle(&line, &agent) {
                    lost_max = limit;
                }
            }
            Err(RecvTimeoutError::Timeout) => break,
            Err(RecvTimeoutError::Disconnected) => {
                let is_needed = agent.node.lock().as_ref().is_some_and(Node::is_claimed);
                if !is_needed {
                    return 0;
                }
                // Another agent may take over in the meantime, and kill this one.
                clock::sleep(lost_max);
                break;
            }
        }
    }
    let mut node = agent.node.lock();
    let left = node.as_mut().map(|node| node.stop(false)).unwrap_or_default();
    left.iter().for_each(|left| eprintln!("forebay: {left}"));
    1
}

/// Handles one message; a new limit for a lost connection, if the message sets it.
fn handle(line: &[u8], agent: &Agent) -> Option<Duration> {
    let node = &agent.node;
    let Envelope { version, number, message } = match serde_json::from_slice(line) {
        Ok(envelope) => envelope,
        Err(error) => {
            let message = format!("a message cannot be read: {error}");
            answer(0, Answer::Failed { message, log: String::new() });
            return None;
        }
    };
    if version != PROTOCOL_VERSION {
        answer(
            number,
            failed(format!("it speaks version {PROTOCOL_VERSION} of the protocol, not {version}")),
        );
        return None;
    }
    match message {
        Request::Attach { name, directory, lost_s_max } => {
            answer(number, attach(NodePlace { name, directory }, node));
            return Some(Duration::from_secs(lost_s_max.into()));
        }
        // These may take long. Others go on.
        Request::Facts(asked) => spawn(number, move || {
            HostFacts::collect(&asked).map(|facts| Answer::Facts(Box::new(facts)))
        }),
        Request::Start(step) => {
            let node = Arc::clone(node);
            spawn(number, move || Ok(start(&step, &node, Node::begin)));
        }
        Request::Resume(step) => {
            let node = Arc::clone(node);
            spawn(number, move || Ok(start(&step, &node, Node::resume)));
        }
        Request::Ping => answer(number, Answer::Done),
        Request::Health { probes } => {
            let (node, probe) = (Arc::clone(node), agent.probe.clone());
            spawn(number, move || health(probes, &node, &probe));
        }
        Request::Remount { probes } => {
            let node = Arc::clone(node);
            spawn(number, move || Ok(remount(probes, &node)));
        }
        Request::Claim(asked) => {
            on_node(number, node, move |node| node.claim(asked).map(|()| Answer::Done));
        }
        Request::Task(asked) => {
            let (task, heard) = (agent.task, Arc::clone(&agent.heard));
            spawn(number, move || {
                let is_heard = || heard.lock().is_some_and(|last| last.elapsed() < TASK_SILENT_MAX);
                task(asked, &is_heard).map(Answer::Task)
            });
        }
        Request::Leave => {
            let node = Arc::clone(node);
            spawn(number, move || {
                node.lock().take();
                Ok(Answer::Done)
            });
        }
        Request::Abort => on_node(number, node, |node| node.abort().map(|()| Answer::Done)),
        Request::Stop { remove } => {
            on_node(number, node, move |node| Ok(Answer::Stopped { left: node.stop(remove) }));
        }
    }
    None
}

fn attach(place: NodePlace, node: &SharedNode) -> Answer {
    let attached = Node::attach(place).map(|attached| {
        let is_claimed = attached.is_claimed();
        node.lock().replace(attached);
        Answer::Attached {
            forebay: env!("CARGO_PKG_VERSION").to_owned(),
            pid: i32::try_from(system::process_id()).unwrap_or_default(),
            is_claimed,
        }
    });
    attached.unwrap_or_else(failed)
}

fn failed(message: String) -> Answer {
    Answer::Failed { message, log: String::new() }
}

fn with<T>(
    node: &SharedNode,
    act: impl FnOnce(&mut Node) -> Result<T, String>,
) -> Result<T, String> {
    match node.lock().as_mut() {
        Some(node) => act(node),
        None => Err("no directory was named before".to_owned()),
    }
}

/// Answers a request that concerns the node's record, in a thread: a ping is answered in the meantime.
fn on_node(
    number: u64,
    node: &SharedNode,
    act: impl FnOnce(&mut Node) -> Result<Answer, String> + Send + 'static,
) {
    let node = Arc::clone(node);
    spawn(number, move || with(&node, act));
}

/// Starts or resumes a step. Other steps start at the same time: only what concerns the node's record excludes them.
fn start(step: &EngineStep, node: &SharedNode, begin: Begin) -> Answer {
    let begun = with(node, |node| begin(node, step));
    let ready = begun.and_then(|process| match process {
        None => Ok(()),
        Some(mut process) => {
            let ready = wait_until_ready(step, &mut process);
            with(node, |node| {
                node.keep(step, process);
                ready
            })
        }
    });
    match ready {
        Ok(()) => Answer::Done,
        Err(message) => {
            let log = with(node, |node| Ok(node.log(&step.id))).unwrap_or_default();
            Answer::Failed { message, log }
        }
    }
}

/// The state of the node. Begins the fences of mounts that ended.
fn health(probes: Vec<PathBuf>, node: &SharedNode, probe: &Probe) -> Result<Answer, String> {
    let mut health = with(node, Node::health)?;
    health.mount_error = probe.check(probes);
    for fence in with(node, |node| Ok(node.fences(&health.ended)))? {
        let node = Arc::clone(node);
        threads::spawn(move || carry_out(&fence, &node)).map_err(|error| error.to_string())?;
    }
    Ok(Answer::Health(health))
}

/// Without its fence others wait longer for a mount that died, until the servers end its session.
fn carry_out(fence: &EngineStep, node: &SharedNode) {
    if let Answer::Failed { message, log } = start(fence, node, Node::begin) {
        eprintln!("forebay: {message}\n{log}");
    }
}

/// Starts the mounts again if the files cannot be written through them.
fn remount(probes: Vec<PathBuf>, node: &SharedNode) -> Answer {
    if answers(probes) {
        return Answer::Done;
    }
    let steps = match with(node, Node::end_mounts) {
        Ok(steps) => steps,
        Err(message) => return failed(message),
    };
    steps.iter().filter_map(|step| step.fence.as_deref()).for_each(|step| carry_out(step, node));
    let answers = steps.iter().map(|step| start(step, node, Node::begin));
    let failed = answers.into_iter().find(|answer| !matches!(answer, Answer::Done));
    // Mounts that a command makes are not started again.
    failed.unwrap_or(if steps.is_empty() { Answer::Done } else { Answer::Remounted })
}

fn spawn(number: u64, act: impl FnOnce() -> Result<Answer, String> + Send + 'static) {
    let started = threads::spawn(move || answer(number, act().unwrap_or_else(failed)));
    if let Err(error) = started {
        answer(number, failed(error.to_string()));
    }
}

/// Sends an answer. A lost connection is noticed where requests are read.
fn answer(number: u64, message: Answer) {
    let envelope = Envelope { version: PROTOCOL_VERSION, number, message };
    let mut output = std::io::stdout().lock();
    if let Ok(mut line) = serde_json::to_vec(&envelope) {
        line.push(b'\n');
        output.write_all(&line).and_then(|()| output.flush()).ok();
    }
}
