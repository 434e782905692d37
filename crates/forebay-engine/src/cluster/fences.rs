//! Fences nodes that do not answer, so that the others need not wait for what such a node had in use. Never judges
//! alone: the engine's step fails while the other nodes reach the node's server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use parking_lot::Mutex;

use super::monitor::Findings;
use super::nodes::Nodes;
use crate::agent::protocol::{Answer, Request};
use crate::steps::{Fence, ServerGroup, serve_without};

/// The step of a fence begins when a node has left a ping without an answer for so long. A connection is given up
/// after 15 s. TCP doubles the time between its attempts, so a link that was down for 5 s carries a ping up to 6.4 s
/// after it was sent. A node under load answers some seconds later.
const SILENT_MAX: Duration = Duration::from_secs(10);
const INTERVAL: Duration = Duration::from_millis(500);
/// The time for the step of a fence.
const STEP_MAX: Duration = Duration::from_secs(20);

/// Watches for nodes to fence.
pub(super) struct Fences {
    pub(super) engine: String,
    pub(super) nodes: Arc<Nodes>,
    pub(super) fences: Vec<Fence>,
    pub(super) servers: Vec<ServerGroup>,
    pub(super) findings: Arc<Mutex<Findings>>,
    /// Set when nobody needs the namespace any more.
    pub(super) is_ending: Arc<AtomicBool>,
}

impl Fences {
    /// Watches until `stop` is closed or has a message.
    pub(super) fn watch(&self, stop: &Receiver<()>) {
        while matches!(stop.recv_timeout(INTERVAL), Err(RecvTimeoutError::Timeout)) {
            for fence in self.fences.iter().filter(|fence| self.is_needed(fence)) {
                self.carry_out(fence);
            }
        }
    }

    /// Whether the node is silent, the others can go on without it, and its server can prove its loss.
    fn is_needed(&self, fence: &Fence) -> bool {
        if self.nodes.connection(fence.node).silence() <= SILENT_MAX {
            return false;
        }
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
        let go_on = || !self.is_ending.load(Ordering::Relaxed);
        let Some(Ok(Answer::Done)) = self.nodes.ask(request, STEP_MAX, &go_on).pop() else {
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
