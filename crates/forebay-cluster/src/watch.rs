//! Watches the nodes of an engine that runs: reports servers that end, fences nodes, gives up data. Also for an engine
//! that another process has started. Never starts or stops an engine.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use forebay_engine::NodesUse;
use forebay_host::{files, threads};
use parking_lot::Mutex;

use crate::error::Error;
use crate::fences::Fences;
use crate::losses::Losses;
use crate::monitor::{Findings, Monitor};
use crate::nodes::{AgentSpec, CONNECT_MAX, Nodes};
use crate::recovery::{Recovery, WatchPlan};

/// Threads that watch the nodes, and what they found.
pub struct Watch {
    nodes: Arc<Nodes>,
    findings: Arc<Mutex<Findings>>,
    is_ending: Arc<AtomicBool>,
    watchers: Vec<Watcher>,
}

/// A thread that watches the nodes, until its sender is dropped.
struct Watcher(mpsc::Sender<()>, JoinHandle<()>);

impl Watcher {
    fn start(
        watch: impl FnOnce(&mpsc::Receiver<()>) + Send + 'static,
    ) -> forebay_host::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        Ok(Self(sender, threads::spawn(move || watch(&receiver))?))
    }
}

impl Watch {
    /// Watches an engine whose process that watched it has ended. It had found `failure` and `lost`. The nodes get new
    /// agents, which end those before.
    ///
    /// # Errors
    /// If a node that was not lost does not answer, or nothing is recorded about the engine.
    pub fn resume(
        agents: AgentSpec,
        (nodes_use, hang_s_max): (&NodesUse, u32),
        (failure, lost): (Option<String>, &[usize]),
    ) -> Result<Self, Error> {
        let recovery: Recovery = files::read_json(&nodes_use.recovery())?;
        let plan = recovery.watch.ok_or(Error::NoNodes)?;
        let (nodes, unreachable) = Nodes::connect_some(agents, CONNECT_MAX)?;
        // A node that cannot be reached may serve: who watches would give up what it has.
        if let Some((_, error)) = unreachable.into_iter().find(|(node, _)| !lost.contains(node)) {
            nodes.close(true);
            return Err(error);
        }
        let mut findings = Findings { failed: failure, ..Findings::default() };
        findings.gone.lost = lost.iter().copied().collect();
        findings.gone.given_up = files::read_json(&nodes_use.given_up()).unwrap_or_default();
        findings.are_data_lost = !findings.gone.given_up.is_empty();
        Self::start(&nodes, plan, (nodes_use, hang_s_max), findings)
    }

    pub(crate) fn start(
        nodes: &Arc<Nodes>,
        plan: WatchPlan,
        (nodes_use, hang_s_max): (&NodesUse, u32),
        findings: Findings,
    ) -> Result<Self, Error> {
        let findings = Arc::new(Mutex::new(findings));
        let is_ending: Arc<AtomicBool> = Arc::default();
        let losses = Losses {
            nodes: Arc::clone(nodes),
            losses: plan.losses,
            tell: plan.announce_loss,
            servers: plan.servers.clone(),
            findings: Arc::clone(&findings),
            nodes_use: nodes_use.clone(),
        };
        let fences = Fences {
            engine: plan.engine.clone(),
            nodes: Arc::clone(nodes),
            fences: plan.fences,
            servers: plan.servers.clone(),
            findings: Arc::clone(&findings),
            is_ending: Arc::clone(&is_ending),
        };
        let monitor = Monitor {
            engine: plan.engine,
            nodes: Arc::clone(nodes),
            promise: plan.promise,
            servers: plan.servers,
            probes: plan.probes,
            findings: Arc::clone(&findings),
            losses,
            hang_max: Duration::from_secs(hang_s_max.into()),
            stored: nodes_use.stored(),
            is_ending: Arc::clone(&is_ending),
        };
        let mut watchers = vec![Watcher::start(move |stop| monitor.run(stop))?];
        if !fences.fences.is_empty() {
            watchers.push(Watcher::start(move |stop| fences.watch(stop))?);
        }
        Ok(Self { nodes: Arc::clone(nodes), findings, is_ending, watchers })
    }

    pub(crate) fn nodes(&self) -> &Arc<Nodes> {
        &self.nodes
    }

    /// Messages since the last call.
    pub fn take_messages(&self) -> Vec<String> {
        std::mem::take(&mut self.findings.lock().messages)
    }

    /// Why operations on the namespace fail; none while they succeed.
    pub fn failure(&self) -> Option<String> {
        self.findings.lock().failed.clone()
    }

    /// The nodes that were lost, by index.
    pub fn lost(&self) -> Vec<usize> {
        let mut lost: Vec<_> = self.findings.lock().gone.lost.iter().copied().collect();
        lost.sort_unstable();
        lost
    }

    /// Whether data were given up.
    pub(crate) fn are_data_lost(&self) -> bool {
        self.findings.lock().are_data_lost
    }

    pub(crate) fn end(&mut self) {
        self.is_ending.store(true, Ordering::Relaxed);
        for Watcher(stop, thread) in self.watchers.drain(..) {
            drop(stop);
            thread.join().ok(); // a panic was printed, and there is nothing to watch any more
        }
    }
}
