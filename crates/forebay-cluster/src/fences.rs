//! Fences nodes that do not answer, so that the others need not wait for what such a node had in use. Never judges
//! alone: the engine's step fails while the other nodes reach the node's server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use forebay_engine::{Fence, ServerGroup, serve_without};
use forebay_host::network::is_reachable;
use parking_lot::Mutex;

use crate::agent::protocol::{Answer, Request};
use crate::monitor::Findings;
use crate::nodes::Nodes;

/// The step of a fence begins when a node has left a ping without an answer for so long. A connection is given up
/// after 15 s. TCP doubles the time between its attempts, so a link that was down for 5 s carries a ping up to 6.4 s
/// after it was sent. A node under load answers some seconds later.
const SILENT_MAX: Duration = Duration::from_secs(10);
/// It begins earlier if new connections prove that the node is gone: TCP opens them as soon as the link is up, and the
/// kernel answers them, however busy the node is. They begin after so long.
const CONNECT_AFTER: Duration = Duration::from_secs(4);
/// The time for one of them. An address whose owner is not known is asked for once in a second.
const CONNECT_MAX: Duration = Duration::from_millis(250);
/// So many in a row prove it: the last begins 2.25 s after the first.
const UNANSWERED_MAX: u32 = 4;
const INTERVAL: Duration = Duration::from_millis(500);
/// The time for the step of a fence.
const STEP_MAX: Duration = Duration::from_secs(20);

/// Watches for nodes to fence.
pub(crate) struct Fences {
    pub(crate) engine: String,
    pub(crate) nodes: Arc<Nodes>,
    pub(crate) fences: Vec<Fence>,
    pub(crate) servers: Vec<ServerGroup>,
    pub(crate) findings: Arc<Mutex<Findings>>,
    /// Set when nobody needs the namespace any more.
    pub(crate) is_ending: Arc<AtomicBool>,
}

/// New connections to a node.
struct Connections {
    address: SocketAddr,
    /// Whether the node answered one when all was well. Otherwise a firewall may drop them, and they prove nothing.
    are_answered: bool,
    unanswered: u32,
}

impl Connections {
    fn to(address: SocketAddr) -> Self {
        Self { address, are_answered: is_reachable(address, CONNECT_MAX), unanswered: 0 }
    }

    /// Whether the last ones prove that the node is gone, with one more.
    fn prove_loss(&mut self) -> bool {
        let is_answered = is_reachable(self.address, CONNECT_MAX);
        self.unanswered = if is_answered { 0 } else { self.unanswered + 1 };
        self.are_answered && self.unanswered >= UNANSWERED_MAX
    }
}

impl Fences {
    /// Watches until `stop` is closed or has a message.
    pub(crate) fn watch(&self, stop: &Receiver<()>) {
        let mut fences: Vec<_> =
            self.fences.iter().map(|fence| (fence, Connections::to(fence.address))).collect();
        while matches!(stop.recv_timeout(INTERVAL), Err(RecvTimeoutError::Timeout)) {
            for (fence, connections) in &mut fences {
                if self.check_silence(fence, connections) {
                    self.carry_out(fence);
                }
            }
        }
    }

    /// Whether the node is silent, and the others can go on without it.
    fn check_silence(&self, fence: &Fence, connections: &mut Connections) -> bool {
        let silence = self.nodes.connection(fence.node).silence();
        if silence <= CONNECT_AFTER || !self.is_possible(fence) {
            connections.unanswered = 0;
            return false;
        }
        connections.prove_loss() || silence > SILENT_MAX
    }

    /// Whether the others can go on without the node, and its server can prove its loss.
    fn is_possible(&self, fence: &Fence) -> bool {
        let findings = self.findings.lock();
        let mut gone = findings.gone.clone();
        gone.lost.insert(fence.node)
            && findings.failed.is_none()
            && !gone.ended.contains(&fence.witness)
            && serve_without(&self.servers, &gone)
    }

    /// Where the step fails, the other nodes reach the node, or the servers are busy with its loss. It is repeated.
    fn carry_out(&self, fence: &Fence) {
        let request = vec![(fence.step.node, Request::Start(fence.step.clone()))];
        let should_continue = || !self.is_ending.load(Ordering::Relaxed);
        let Some(Ok(Answer::Done)) = self.nodes.ask(request, STEP_MAX, &should_continue).pop()
        else {
            return;
        };
        let name = self.nodes.name(fence.node);
        let mut findings = self.findings.lock();
        findings.gone.lost.insert(fence.node);
        findings.messages.push(format!(
            "engine {}: node {name}: the node is lost: neither it nor {} answers; it can no longer use the job's files",
            self.engine, fence.witness
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TCP connects to no group of machines.
    const NOBODY: ([u8; 4], u16) = ([224, 0, 0, 1], 1);

    #[test]
    fn node_that_answers_no_new_connection_any_more_is_lost_at_the_last_of_them() {
        let mut connections =
            Connections { address: NOBODY.into(), are_answered: true, unanswered: 0 };
        let proven: Vec<_> = (0..5).map(|_| connections.prove_loss()).collect();
        assert_eq!(proven, [false, false, false, true, true]);
        connections.address = ([127, 0, 0, 1], 1).into();
        assert!(!connections.prove_loss(), "a refusal is an answer");
        assert_eq!(connections.unanswered, 0);
    }

    #[test]
    fn new_connections_prove_nothing_where_a_firewall_always_dropped_them() {
        let mut connections = Connections::to(NOBODY.into());
        assert!((0..5).all(|_| !connections.prove_loss()));
    }
}
