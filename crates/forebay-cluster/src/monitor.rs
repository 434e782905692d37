//! Watches the nodes of a job while it runs: processes alive, and small files written through every mount.
//! Lets operations fail rather than wait for ever. Never ends the job.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use forebay_engine::{HANG_S_MAX, MissingServers, Promise, Role, ServerGroup, serve_without};
use forebay_host::{clock, files};
use indicatif::HumanBytes;
use parking_lot::Mutex;

use crate::agent::GONE;
use crate::agent::protocol::{Answer, NodeHealth, Request};
use crate::connection::Connection;
use crate::losses::Losses;
use crate::nodes::Nodes;
use crate::requests::{RECONNECT_S_MAX, Reconnection, WhenLost};

/// The interval of looks.
const INTERVAL: Duration = Duration::from_secs(2);
/// A metadata server needs 2 ms for the files of one node. Each look lets at most so many nodes write them, in turn: a
/// tenth of its time.
const PROBED_MAX: usize = 100;
/// The time for a node to answer a look.
const ANSWER_MAX: Duration = Duration::from_secs(12);
/// A store with less is full: servers of an engine end without room for their own files.
const STORE_BYTES_MIN: u64 = 16 << 20;
/// The time to start another agent.
const RECONNECT_MAX: Duration = Duration::from_secs(RECONNECT_S_MAX);
/// Overrides [`HANG_S_MAX`].
const HANG_VARIABLE: &str = "FOREBAY_ENGINE_HANG_S";

/// [`HANG_S_MAX`], or what the environment says.
pub fn hang_s_max() -> u32 {
    let set = std::env::var(HANG_VARIABLE).ok().and_then(|text| text.parse().ok());
    set.unwrap_or(HANG_S_MAX)
}

/// What the monitor found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Messages for the user that were not taken yet.
    pub(crate) messages: Vec<String>,
    /// Why operations on the namespace fail; none while they succeed.
    pub(crate) failed: Option<String>,
    /// Whether data ended with a server.
    pub(crate) are_data_lost: bool,
    /// What is not there any more.
    pub(crate) gone: MissingServers,
}

/// The state of one node between two looks.
#[derive(Default)]
struct Watched {
    /// Steps whose end was reported.
    reported: HashSet<String>,
    lost_since: Option<Instant>,
    /// An attempt to connect the node again.
    reconnection: Option<Reconnection>,
    mount_fails_since: Option<Instant>,
    /// Whether its store was reported to be full.
    is_full: bool,
    /// What it stores of the job's files.
    stored_bytes: Option<u64>,
}

/// Watches the nodes.
pub(crate) struct Monitor {
    pub(crate) engine: String,
    pub(crate) nodes: Arc<Nodes>,
    pub(crate) promise: Promise,
    pub(crate) servers: Vec<ServerGroup>,
    /// Small files in the namespace for each node; none if there is no namespace over the nodes.
    pub(crate) probes: Vec<Vec<PathBuf>>,
    pub(crate) findings: Arc<Mutex<Findings>>,
    pub(crate) losses: Losses,
    /// [`HANG_S_MAX`], unless tests need less.
    pub(crate) hang_max: Duration,
    /// The file with what each node stores.
    pub(crate) stored: PathBuf,
    /// Set when nobody waits for a look any more.
    pub(crate) is_ending: Arc<AtomicBool>,
}

/// What a look at a node says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Verdict {
    /// What the user is to know.
    news: Vec<String>,
    /// Why the namespace cannot go on.
    failure: Option<String>,
    /// Whether it lost a server that it needs.
    lost_server: bool,
}

/// Judges the health of a node. A process that ended is reported once. `still_serves`: also
/// without the servers that ended.
fn verdict(
    still_serves: bool,
    hang_max: Duration,
    state: &mut Watched,
    health: &NodeHealth,
    now: Instant,
) -> Verdict {
    let mut verdict = Verdict::default();
    for step in health.ended.iter().filter(|step| state.reported.insert(step.id.clone())) {
        let what = format!("{} ended: {}", step.id, step.how);
        if step.role == Role::Server && !still_serves {
            verdict.failure.get_or_insert(what);
            verdict.lost_server = true;
        } else {
            verdict.news.push(what);
        }
    }
    // Operations of this node fail at once if the process of the mount ended. Other nodes go on.
    let mount_ended = health.ended.iter().any(|step| step.role == Role::Mount);
    match health.mount_error.as_ref().filter(|_| !mount_ended) {
        None => state.mount_fails_since = None,
        Some(error) => {
            let since = *state.mount_fails_since.get_or_insert(now);
            if now.saturating_duration_since(since) > hang_max {
                verdict.failure.get_or_insert(format!("the mount fails: {error}"));
            }
        }
    }
    verdict
}

/// Whether a node writes its files at this look.
fn is_probed(look: usize, node: usize, nodes: usize) -> bool {
    let turns = nodes.div_ceil(PROBED_MAX);
    look % turns == node % turns
}

impl Monitor {
    /// Watches until `stop` is closed or has a message.
    pub(crate) fn run(&self, stop: &Receiver<()>) {
        let mut watched: Vec<_> = (0..self.nodes.len()).map(|_| Watched::default()).collect();
        let mut settled = HashSet::new();
        for look in 0.. {
            match stop.recv_timeout(INTERVAL) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
            }
            if self.findings.lock().failed.is_none() {
                self.check_nodes(look, &mut watched);
                self.settle_losses(&mut settled);
            }
        }
    }

    /// Carries out what a group of servers needs after the loss of one, once. `settled`: for which that was done.
    fn settle_losses(&self, settled: &mut HashSet<String>) {
        let gone = self.findings.lock().gone.clone();
        let due = self.servers.iter().filter_map(|group| group.due(&gone));
        for step in due.filter(|step| settled.insert(step.id.clone())) {
            if let Err(message) = self.losses.take(&[step]) {
                self.add_message(step.node, &format!("{message}; the job goes on, but may not survive a server that stops for some seconds"));
            }
        }
    }

    fn check_nodes(&self, look: usize, watched: &mut [Watched]) {
        for (node, state) in watched.iter_mut().enumerate() {
            self.end_reconnection(node, state);
        }
        let lost = self.findings.lock().gone.lost.clone();
        let is_connected = |node: &usize| watched[*node].reconnection.is_none();
        let nodes = (0..self.nodes.len()).filter(|node| !lost.contains(node));
        let asked: Vec<_> = nodes.filter(is_connected).collect();
        let connections: Vec<_> = asked.iter().map(|node| self.nodes.connection(*node)).collect();
        let probes = |node: usize| match is_probed(look, node, self.nodes.len()) {
            true => self.probes[node].clone(),
            false => Vec::new(), // its agent repeats what it found last
        };
        let request = |node: &usize| Request::Health { probes: probes(*node) };
        let unreachable: Vec<_> =
            (0..watched.len()).filter(|node| watched[*node].lost_since.is_some()).collect();
        let requests = asked.iter().map(|node| (*node, request(node))).collect();
        let should_continue = || !self.is_ending.load(Ordering::Relaxed);
        let answers = self.nodes.ask_with(requests, WhenLost::Fail, ANSWER_MAX, &should_continue);
        if !should_continue() {
            return;
        }
        for ((node, connection), answer) in asked.into_iter().zip(connections).zip(answers) {
            if self.findings.lock().gone.lost.contains(&node) {
                continue; // it was fenced
            }
            let state = &mut watched[node];
            match answer {
                Ok(Answer::Health(health)) => {
                    state.lost_since = None;
                    self.judge(node, state, &health, &unreachable);
                }
                Ok(Answer::Failed { message, .. }) => self.add_message(node, &message),
                Ok(_) => self.add_message(node, crate::nodes::UNEXPECTED),
                Err(message) => self.begin_reconnection(node, state, &message, &connection),
            }
        }
        self.write_stored(watched);
    }

    /// Writes down what each node stores, for `forebay status`. Without it the status says less.
    fn write_stored(&self, watched: &[Watched]) {
        let stored: Vec<_> = watched.iter().map(|state| state.stored_bytes).collect();
        if stored.iter().any(Option::is_some) {
            files::write_json(&self.stored, &self.stored.with_extension("fresh"), &stored).ok();
        }
    }

    /// `unreachable`: nodes that are connected again now.
    fn judge(&self, node: usize, state: &mut Watched, health: &NodeHealth, unreachable: &[usize]) {
        let servers = health.ended.iter().filter(|step| step.role == Role::Server);
        self.findings.lock().gone.ended.extend(servers.map(|step| step.id.clone()));
        state.stored_bytes = health.stored_bytes;
        let gave_up = self.give_up(node);
        let verdict = verdict(self.still_serves(), self.hang_max, state, health, clock::now());
        verdict.news.iter().chain(&gave_up).for_each(|what| self.add_message(node, what));
        let is_full = health.store_available_bytes < STORE_BYTES_MIN;
        if is_full && !std::mem::replace(&mut state.is_full, is_full) {
            let available = HumanBytes(health.store_available_bytes);
            self.add_message(
                node,
                &format!("its store is full: {available} are available (ENOSPC)"),
            );
        }
        if verdict.failure.is_some() && !verdict.lost_server && self.lose(unreachable) {
            state.mount_fails_since = None;
        } else if let Some(what) = verdict.failure {
            let are_lost = verdict.lost_server && !self.promise.survives_restart;
            self.findings.lock().are_data_lost |= are_lost;
            self.fail(node, &what);
        }
    }

    fn still_serves(&self) -> bool {
        serve_without(&self.servers, &self.findings.lock().gone)
    }

    /// Mounts wait for nodes that cannot be reached. Goes on without those, if that helps.
    fn lose(&self, unreachable: &[usize]) -> bool {
        for node in unreachable {
            self.findings.lock().gone.lost.insert(*node);
            if let Some(what) = self.give_up(*node) {
                self.add_message(
                    *node,
                    "the node is lost: it cannot be reached, and mounts wait for it",
                );
                self.add_message(*node, &what);
            }
        }
        !unreachable.is_empty() && self.still_serves()
    }

    /// If servers are missing, goes on without the data of this node's, where the engine can. Says what that means.
    fn give_up(&self, node: usize) -> Option<String> {
        let gave_up = (!self.still_serves()).then(|| self.losses.give_up(node))??;
        Some(match gave_up {
            Ok(()) => "what it stored of the job's files is lost: reads and writes there fail with EIO from now on; other files and new ones can be used".to_owned(),
            Err(message) => format!("the others cannot go on without it: {message}"),
        })
    }

    /// Starts another agent.
    fn begin_reconnection(
        &self,
        node: usize,
        state: &mut Watched,
        message: &str,
        lost: &Arc<Connection>,
    ) {
        if state.lost_since.is_none() {
            self.add_message(node, &format!("{message}; connecting again"));
            state.lost_since = Some(clock::now());
        }
        state.reconnection = Some(Reconnection::start(&self.nodes, node, lost, RECONNECT_MAX));
    }

    /// Looks whether the other agent answers. The node is lost after the limit of a hang.
    fn end_reconnection(&self, node: usize, state: &mut Watched) {
        let Some(done) = state.reconnection.as_ref().and_then(Reconnection::poll) else { return };
        state.reconnection = None;
        if self.findings.lock().gone.lost.contains(&node) {
            return; // it was fenced
        }
        let done = done.and_then(|is_claimed| match is_claimed {
            true => Ok(()),
            false => Err(GONE.to_owned()),
        });
        let waited = state.lost_since.map_or(Duration::ZERO, |since| since.elapsed());
        match done {
            Ok(()) => {
                state.lost_since = None;
                self.add_message(node, "connected again");
            }
            Err(_) if waited < self.hang_max => {
                let lost = self.nodes.connection(node);
                state.reconnection =
                    Some(Reconnection::start(&self.nodes, node, &lost, RECONNECT_MAX));
            }
            Err(error) => {
                let what = format!("the node is lost: {error}");
                self.findings.lock().gone.lost.insert(node);
                let gave_up = self.give_up(node);
                if self.still_serves() && (self.promise.survives_node || gave_up.is_some()) {
                    self.add_message(node, &what);
                    gave_up.iter().for_each(|what| self.add_message(node, what));
                } else {
                    gave_up.iter().for_each(|what| self.add_message(node, what));
                    self.fail(node, &what);
                }
            }
        }
    }

    fn add_message(&self, node: usize, what: &str) {
        let message = format!("engine {}: node {}: {what}", self.engine, self.nodes.name(node));
        self.findings.lock().messages.push(message);
    }

    /// Aborts all mounts: operations on the namespace fail from now on.
    fn fail(&self, node: usize, what: &str) {
        let name = self.nodes.name(node);
        let reason = format!("engine {}: node {name}: {what}", self.engine);
        let aborted = self.nodes.all(&Request::Abort, ANSWER_MAX);
        let mut findings = self.findings.lock();
        findings.messages.push(format!("{reason}; operations on the job's files fail from now on"));
        for failure in aborted.into_iter().filter_map(Result::err) {
            let (node, message) = (failure.node, failure.message);
            findings.messages.push(format!("engine {}: node {node}: {message}", self.engine));
        }
        findings.failed = Some(reason);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::protocol::EndedStep;

    const HANG_MAX: Duration = Duration::from_secs(60);

    fn ended(role: Role) -> NodeHealth {
        let step = EndedStep { id: "n1.one".to_owned(), role, how: "signal: 9".to_owned() };
        NodeHealth { ended: vec![step], ..NodeHealth::default() }
    }

    fn hanging() -> NodeHealth {
        NodeHealth { mount_error: Some("no answer".to_owned()), ..NodeHealth::default() }
    }

    #[test]
    fn lost_server_ends_the_namespace_unless_a_copy_serves() {
        let now = clock::now();
        let judge = |still_serves| {
            verdict(still_serves, HANG_MAX, &mut Watched::default(), &ended(Role::Server), now)
        };
        assert_eq!(judge(false).failure.as_deref(), Some("n1.one ended: signal: 9"));
        assert_eq!(
            judge(true),
            Verdict { news: vec!["n1.one ended: signal: 9".to_owned()], ..Verdict::default() }
        );
    }

    #[test]
    fn many_nodes_are_probed_in_turn() {
        for (nodes, turns) in [(1, 1), (100, 1), (101, 2), (1000, 10)] {
            let probed = |look| (0..nodes).filter(|node| is_probed(look, *node, nodes)).count();
            assert!((0..2 * turns).all(|look| (1..=PROBED_MAX).contains(&probed(look))));
            assert_eq!((0..turns).map(probed).sum::<usize>(), nodes);
        }
    }

    #[test]
    fn lost_mount_is_reported_once_and_does_not_stop_other_nodes() {
        let (mut state, now) = (Watched::default(), clock::now());
        let health = NodeHealth { mount_error: hanging().mount_error, ..ended(Role::Mount) };
        assert_eq!(verdict(false, HANG_MAX, &mut state, &health, now).news.len(), 1);
        let later = now + 2 * HANG_MAX;
        assert_eq!(verdict(false, HANG_MAX, &mut state, &health, later), Verdict::default());
    }

    #[test]
    fn mount_that_hangs_is_given_up_at_the_limit_unless_it_answered_in_between() {
        let (mut state, now) = (Watched::default(), clock::now());
        let mut judge = |health: &NodeHealth, s: u64| {
            verdict(true, HANG_MAX, &mut state, health, now + Duration::from_secs(s)).failure
        };
        assert_eq!(judge(&hanging(), 0), None);
        assert_eq!(judge(&NodeHealth::default(), 50), None);
        assert_eq!(judge(&hanging(), 55), None);
        assert_eq!(judge(&hanging(), 110), None);
        assert_eq!(judge(&hanging(), 116).as_deref(), Some("the mount fails: no answer"));
    }
}
