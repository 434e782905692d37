//! The nodes of a job and their agents: connects them, asks all of them at once, and connects an agent
//! again that was lost. Never knows what an engine is.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use forebay_host::{clock, system};
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::agent::protocol::{Answer, Request};
use crate::connection::Connection;
use crate::error::Error;
use crate::requests::{PendingRequest, RECONNECT_S_MAX, WhenLost};

/// The time for an agent to answer its first request: the launcher may ask other machines.
pub(crate) const CONNECT_MAX: Duration = Duration::from_secs(60);
/// The time to connect a node again where that failed just now, in seconds.
const RECONNECT_AGAIN_S_MAX: u64 = 3;
const FAILED_RECENTLY: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// An agent ends what it started after so long without a message, in seconds: half an hour, in which
/// `forebay clean` can continue after a kill of `forebay run`.
const LOST_S_MAX: u32 = 1800;
/// Overrides it.
const LOST_VARIABLE: &str = "FOREBAY_AGENT_LOST_S";

/// How long an agent of `forebay run` waits for a message, in seconds: half an hour, or what the environment says.
pub fn lost_s_max() -> u32 {
    let set = std::env::var(LOST_VARIABLE).ok().and_then(|text| text.parse().ok());
    set.unwrap_or(LOST_S_MAX)
}

/// How the nodes of a job are reached.
pub struct AgentSpec {
    /// The names, as the user or the scheduler wrote them. The first is this machine.
    pub names: Vec<String>,
    /// The command line that starts the agent of a node. One for each name.
    pub commands: Vec<Vec<OsString>>,
    /// The job's directory on each node.
    pub directory: PathBuf,
    /// An agent ends itself and what it started after so long without a message, in seconds.
    pub lost_s_max: u32,
}

/// The connected nodes.
pub(crate) struct Nodes {
    agents: AgentSpec,
    connections: Vec<RwLock<Arc<Connection>>>,
    /// One thread at a time connects a node again. When that failed last.
    reconnecting: Vec<Mutex<Option<Instant>>>,
    /// The processes of all launchers that were started.
    launched: Mutex<Vec<i32>>,
    is_closed: AtomicBool,
}

/// Nodes that were not reached, by index, and why.
type Unreachable = Vec<(usize, Error)>;

/// The answer of each node, or why there is none.
type Answers = Vec<Result<Answer, String>>;

/// A failure on a node.
#[derive(Debug, Clone)]
pub(crate) struct NodeFailure {
    /// The node's name.
    pub(crate) node: String,
    /// What happened.
    pub(crate) message: String,
}

impl Nodes {
    /// Connects the agents of all nodes. `should_continue` is asked while they start.
    ///
    /// # Errors
    /// Names the node that cannot be reached, or whose Forebay differs. Leaves no agent running.
    pub(crate) fn connect(
        agents: AgentSpec,
        time_max: Duration,
        should_continue: &dyn Fn() -> bool,
    ) -> Result<Arc<Self>, Error> {
        let (nodes, answers) = Self::start_agents(agents, time_max, should_continue)?;
        match nodes.check_attached(answers) {
            Ok(()) => Ok(nodes),
            Err(error) => {
                nodes.close(true);
                Err(error)
            }
        }
    }

    /// Connects the nodes that can be reached, among them the first. Requests to the others fail; their errors.
    ///
    /// # Errors
    /// If the first one cannot be reached, or the Forebay of one differs.
    pub(crate) fn connect_some(
        agents: AgentSpec,
        time_max: Duration,
    ) -> Result<(Arc<Self>, Unreachable), Error> {
        let (nodes, answers) = Self::start_agents(agents, time_max, &|| true)?;
        let mut unreachable = Unreachable::new();
        for (node, answer) in answers.into_iter().enumerate() {
            match nodes.check_one(node, answer) {
                Ok(()) => {}
                Err(error @ Error::NodeUnreachable { .. }) if node > 0 => {
                    *nodes.reconnecting[node].lock() = Some(clock::now());
                    unreachable.push((node, error));
                }
                Err(error) => {
                    nodes.close(true);
                    return Err(error);
                }
            }
        }
        Ok((nodes, unreachable))
    }

    /// Starts the agents of all nodes; their answers.
    fn start_agents(
        agents: AgentSpec,
        time_max: Duration,
        should_continue: &dyn Fn() -> bool,
    ) -> Result<(Arc<Self>, Answers), Error> {
        let started = agents.commands.iter().map(|words| {
            let connection = Connection::start(words)?;
            Ok(RwLock::new(Arc::new(connection)))
        });
        let connections = started.collect::<Result<Vec<_>, Error>>()?;
        let launched = connections.iter().map(|one| one.read().launcher_pid()).collect();
        let nodes = Arc::new(Self {
            reconnecting: connections.iter().map(|_| Mutex::default()).collect(),
            launched: Mutex::new(launched),
            is_closed: AtomicBool::new(false),
            agents,
            connections,
        });
        let all = (0..nodes.len()).map(|node| (node, nodes.attach_request(node))).collect();
        let answers = nodes.ask_with(all, WhenLost::Fail, time_max, should_continue);
        Ok((nodes, answers))
    }

    fn attach_request(&self, node: usize) -> Request {
        Request::Attach {
            name: self.name(node).to_owned(),
            directory: self.agents.directory.clone(),
            lost_s_max: self.agents.lost_s_max,
        }
    }

    fn check_attached(&self, answers: Answers) -> Result<(), Error> {
        let mut answers = answers.into_iter().enumerate();
        answers.try_for_each(|(node, answer)| self.check_one(node, answer))
    }

    fn check_one(&self, node: usize, answer: Result<Answer, String>) -> Result<(), Error> {
        let name = self.name(node).to_owned();
        match answer {
            Ok(Answer::Attached { forebay, .. }) if forebay == env!("CARGO_PKG_VERSION") => Ok(()),
            Ok(Answer::Attached { forebay, .. }) => Err(Error::NodeVersion { node: name, forebay }),
            Ok(Answer::Failed { message, .. }) => Err(Error::Node { node: name, message }),
            Ok(_) => Err(Error::Node { node: name, message: UNEXPECTED.to_owned() }),
            Err(message) => {
                let printed = self.connections[node].read().printed();
                Err(Error::NodeUnreachable { node: name, message, printed })
            }
        }
    }

    /// The number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.connections.len()
    }

    /// The name of a node.
    pub(crate) fn name(&self, node: usize) -> &str {
        &self.agents.names[node]
    }

    /// How the nodes are reached.
    pub(crate) fn agents(&self) -> &AgentSpec {
        &self.agents
    }

    /// The processes here that lead to the agents. They are not processes of the job.
    pub(crate) fn launchers(&self) -> Vec<i32> {
        self.launched.lock().clone()
    }

    /// The present connection to a node.
    pub(crate) fn connection(&self, node: usize) -> Arc<Connection> {
        Arc::clone(&self.connections[node].read())
    }

    /// Sends requests and waits for all answers, in the order of the requests. A node whose connection is lost
    /// is connected again.
    pub(crate) fn ask(
        self: &Arc<Self>,
        requests: Vec<(usize, Request)>,
        time_max: Duration,
        should_continue: &dyn Fn() -> bool,
    ) -> Vec<Result<Answer, String>> {
        self.ask_with(requests, WhenLost::Repeat, time_max, should_continue)
    }

    /// The same, for a choice of what happens when a connection is lost.
    pub(crate) fn ask_with(
        self: &Arc<Self>,
        requests: Vec<(usize, Request)>,
        when_lost: WhenLost,
        time_max: Duration,
        should_continue: &dyn Fn() -> bool,
    ) -> Vec<Result<Answer, String>> {
        let ask = |(node, request)| PendingRequest::new(self, node, request, when_lost);
        let mut asked: Vec<_> = requests.into_iter().map(ask).collect();
        let began = clock::now();
        let mut answers: Vec<Option<Result<Answer, String>>> = asked.iter().map(|_| None).collect();
        loop {
            for (answer, asked) in answers.iter_mut().zip(&mut asked) {
                if answer.is_none() {
                    *answer = asked.poll(self);
                }
            }
            let is_over = began.elapsed() > time_max || !should_continue();
            if is_over || answers.iter().all(Option::is_some) {
                break;
            }
            clock::sleep(POLL_INTERVAL);
        }
        let late = || {
            let waited = began.elapsed().as_secs();
            if should_continue() {
                Err(format!("it does not answer within {waited} s"))
            } else {
                Err("interrupted".to_owned())
            }
        };
        answers.into_iter().map(|answer| answer.unwrap_or_else(late)).collect()
    }

    /// Sends one request to all nodes, and waits until each is carried out.
    pub(crate) fn all(
        self: &Arc<Self>,
        request: &Request,
        time_max: Duration,
    ) -> Vec<Result<Answer, NodeFailure>> {
        self.each(|_| request.clone(), time_max)
    }

    /// Sends each node a request of its own, and waits until each is carried out.
    pub(crate) fn each(
        self: &Arc<Self>,
        request: impl Fn(usize) -> Request,
        time_max: Duration,
    ) -> Vec<Result<Answer, NodeFailure>> {
        let requests = (0..self.len()).map(|node| (node, request(node))).collect();
        let answers = self.ask(requests, time_max, &|| true);
        let named = |(node, answer): (usize, Result<Answer, String>)| {
            let failure = |message| NodeFailure { node: self.name(node).to_owned(), message };
            match answer {
                Ok(Answer::Failed { message, .. }) => Err(failure(message)),
                Ok(answer) => Ok(answer),
                Err(message) => Err(failure(message)),
            }
        };
        answers.into_iter().enumerate().map(named).collect()
    }

    /// Starts another agent for a node whose connection was lost. It continues what the earlier one began.
    /// Returns whether the job's directory exists there.
    pub(crate) fn reconnect(
        &self,
        node: usize,
        lost: &Arc<Connection>,
        time_max: Duration,
    ) -> Result<bool, String> {
        let mut failed = self.reconnecting[node].lock();
        if !Arc::ptr_eq(lost, &self.connection(node)) {
            return Ok(true); // another thread did it
        }
        lost.close(true);
        let words = &self.agents.commands[node];
        let fresh = Connection::start(words).map_err(|error| error.to_string())?;
        self.launched.lock().push(fresh.launcher_pid());
        let attached = match fresh.send(&self.attach_request(node)).answer(time_max) {
            Ok(Answer::Attached { is_claimed, .. }) => Ok(is_claimed),
            Ok(Answer::Failed { message, .. }) => Err(message),
            Ok(_) => Err(UNEXPECTED.to_owned()),
            Err(message) => Err(format!("{message} {}", fresh.printed()).trim().to_owned()),
        };
        let attached =
            attached.and_then(|is_claimed| match self.is_closed.load(Ordering::SeqCst) {
                true => Err("all connections are closed".to_owned()),
                false => Ok(is_claimed),
            });
        if attached.is_err() {
            fresh.close(true);
            *failed = Some(clock::now());
            return attached;
        }
        *self.connections[node].write() = Arc::new(fresh);
        attached
    }

    /// The time to connect a node again: shorter if that failed just now.
    pub(crate) fn reconnect_max(&self, node: usize) -> Duration {
        // Where a thread is at it, its result counts.
        let failed = self.reconnecting[node].try_lock().and_then(|failed| *failed);
        let is_recent = failed.is_some_and(|at| at.elapsed() < FAILED_RECENTLY);
        Duration::from_secs(if is_recent { RECONNECT_AGAIN_S_MAX } else { RECONNECT_S_MAX })
    }

    /// Closes the connections. With `kills` launchers do not wait for their agents.
    pub(crate) fn close(&self, kills: bool) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.connections.iter().for_each(|connection| connection.read().close(kills));
    }
}

/// One node of a job, for tasks that the program of the agent adds.
#[derive(Clone)]
pub struct NodeHandle {
    nodes: Arc<Nodes>,
    node: usize,
}

impl NodeHandle {
    pub(crate) fn new(nodes: &Arc<Nodes>, node: usize) -> Self {
        Self { nodes: Arc::clone(nodes), node }
    }

    /// The node's name.
    pub fn name(&self) -> &str {
        self.nodes.name(self.node)
    }

    /// Sends a task and waits for its answer. If the connection is lost, the node is connected again, which ends
    /// the task there, and the task is repeated.
    ///
    /// # Errors
    /// If the node does not answer within `time_max`, or cannot carry it out.
    pub fn ask(
        &self,
        task: serde_json::Value,
        time_max: Duration,
    ) -> Result<serde_json::Value, String> {
        let request = vec![(self.node, Request::Task(task))];
        match self.nodes.ask(request, time_max, &|| true).pop() {
            Some(Ok(Answer::Task(answer))) => Ok(answer),
            Some(Ok(Answer::Failed { message, .. }) | Err(message)) => Err(message),
            _ => Err(UNEXPECTED.to_owned()),
        }
    }
}

/// An agent of this version does not do that.
pub(crate) const UNEXPECTED: &str = "it gave an unexpected answer";

/// A new directory for a job, with a name that nobody can guess.
///
/// # Errors
/// If the kernel gives no random bytes.
pub fn directory_of(below: &std::path::Path, id: &str) -> forebay_host::Result<PathBuf> {
    Ok(below.join(format!("forebay-node-{id}-{}", system::random_text::<6>()?)))
}
