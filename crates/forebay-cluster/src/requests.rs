//! A request to a node until its answer. If the connection is lost, or the node is silent, it connects the
//! node again and repeats the request. Never repeats a step that the node carried out.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use forebay_host::{clock, threads};

use crate::agent::protocol::{Answer, Request};
use crate::connection::{Connection, Sent};
use crate::nodes::Nodes;

/// A node that answers nothing for so long, not even a ping, is connected again, in seconds.
pub(crate) const SILENT_S_MAX: u64 = 15;
/// The time to connect a node again, in seconds.
pub(crate) const RECONNECT_S_MAX: u64 = 15;
/// A request is repeated so often.
const REPEATS_MAX: u32 = 3;
/// The time between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// What happens when the connection is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenLost {
    /// Connect again, and repeat the request.
    Repeat,
    /// Report it.
    Fail,
}

/// A request and its state.
pub(crate) struct PendingRequest {
    node: usize,
    request: Request,
    when_lost: WhenLost,
    repeats: u32,
    state: State,
}

enum State {
    Sent { connection: Arc<Connection>, sent: Sent },
    Lost { message: String, reconnection: Reconnection },
}

impl PendingRequest {
    /// Sends a request.
    pub(crate) fn new(nodes: &Nodes, node: usize, request: Request, when_lost: WhenLost) -> Self {
        let state = Self::sent(nodes, node, &request);
        Self { node, request, when_lost, repeats: 0, state }
    }

    fn sent(nodes: &Nodes, node: usize, request: &Request) -> State {
        let connection = nodes.connection(node);
        let sent = connection.send(request);
        State::Sent { connection, sent }
    }

    /// The answer, if it has arrived, or why none will.
    pub(crate) fn poll(&mut self, nodes: &Arc<Nodes>) -> Option<Result<Answer, String>> {
        match &self.state {
            State::Sent { connection, sent } => {
                let lost = match sent.poll() {
                    Some(Ok(answer)) => return Some(Ok(answer)),
                    Some(Err(message)) => message,
                    None if self.when_lost == WhenLost::Fail => return None,
                    None if connection.silence() > Duration::from_secs(SILENT_S_MAX) => {
                        format!("it does not answer within {SILENT_S_MAX} s")
                    }
                    None => return None,
                };
                if self.when_lost == WhenLost::Fail || self.repeats >= REPEATS_MAX {
                    return Some(Err(lost));
                }
                let limit = nodes.reconnect_max(self.node);
                let reconnection = Reconnection::start(nodes, self.node, connection, limit);
                self.state = State::Lost { message: lost, reconnection };
                None
            }
            State::Lost { message, reconnection } => match reconnection.poll()? {
                Ok(_) => {
                    self.repeats += 1;
                    if let Request::Start(step) = &self.request {
                        self.request = Request::Resume(step.clone());
                    }
                    self.state = Self::sent(nodes, self.node, &self.request);
                    None
                }
                Err(error) if error == *message => Some(Err(error)),
                Err(error) => Some(Err(format!("{message}; connecting again failed: {error}"))),
            },
        }
    }
}

/// Connects a node again in a thread of its own.
pub(crate) struct Reconnection(mpsc::Receiver<Result<bool, String>>);

impl Reconnection {
    /// Tries for `limit`. `lost` is the connection that was lost.
    pub(crate) fn start(
        nodes: &Arc<Nodes>,
        node: usize,
        lost: &Arc<Connection>,
        limit: Duration,
    ) -> Self {
        let (sender, receiver) = mpsc::channel();
        let (nodes, lost) = (Arc::clone(nodes), Arc::clone(lost));
        let report = sender.clone();
        let started = threads::spawn(move || {
            let began = clock::now();
            loop {
                let remaining = limit.saturating_sub(began.elapsed());
                match nodes.reconnect(node, &lost, remaining) {
                    Err(_) if began.elapsed() + RETRY_INTERVAL < limit => {
                        clock::sleep(RETRY_INTERVAL);
                    }
                    done => return drop(sender.send(done)), // who waited may have given up
                }
            }
        });
        if let Err(error) = started {
            report.send(Err(error.to_string())).ok();
        }
        Self(receiver)
    }

    /// Whether the job's directory exists there, once the node is connected; or why it is not.
    pub(crate) fn poll(&self) -> Option<Result<bool, String>> {
        match self.0.try_recv() {
            Ok(done) => Some(done),
            Err(mpsc::TryRecvError::Empty) => None,
            Err(mpsc::TryRecvError::Disconnected) => {
                Some(Err("the attempt was given up".to_owned()))
            }
        }
    }
}
