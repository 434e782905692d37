//! What a job leaves on its nodes: lets it be read again, stops it and removes it, on all nodes at the same
//! time. A node that does not answer is named, and delays the others by a short limit at most.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use forebay_engine::{MissingServers, NodesUse, Role, serve_without};
use forebay_host::messages::Messages;
use forebay_host::{files, threads};

use crate::agent::protocol::{Answer, Request};
use crate::nodes::{AgentSpec, NodeFailure, Nodes, UNEXPECTED};
use crate::recovery::Recovery;
use crate::runner;
use crate::session::{CLAIM_MAX, probe_file};

/// The time for a node that answers to stop its steps, and to remove their data.
const STOP_MAX: Duration = Duration::from_secs(180);
/// The time for a node to find out that a mount does not answer, and to mount again.
const REMOUNT_MAX: Duration = Duration::from_secs(150);
/// The time to reach a node of an earlier `forebay run`, in seconds.
const REACH_S_MAX: u64 = 30;
/// The agents that clean end after so long without a message, in seconds.
const CLEAN_LOST_S_MAX: u32 = 60;

/// Mounts the namespace again where the mount does not answer. Messages about these nodes.
pub(crate) fn remount(nodes: &Arc<Nodes>, mount: &Path) -> Vec<String> {
    // A file of each node: no node waits for what another one has in use.
    let request = |node| Request::Remount { probes: vec![probe_file(mount, node, 0)] };
    let answers = nodes.each(request, REMOUNT_MAX);
    let told = |(node, answer)| match answer {
        Ok(Answer::Remounted) => Some(format!(
            "node {}: its mount did not answer, and was started again",
            nodes.name(node)
        )),
        Ok(_) => None,
        Err(failure) => Some(format!("cannot mount again: {}", described(failure))),
    };
    answers.into_iter().enumerate().filter_map(told).collect()
}

/// Lets this node, the first, read the namespace that an earlier session left. Mounts it again if the
/// mount does not answer. Starts the engine again if its servers ended and their data are on disk.
///
/// The agents end the engine after `lost_s_max` seconds without a message, also where they were reached in vain.
///
/// Returns which servers had ended and were started again, if any: files may lack what was not synced before.
///
/// # Errors
/// Why the data cannot be read.
pub fn restore_left(
    used: &NodesUse,
    lost_s_max: u32,
    messages: &dyn Messages,
) -> Result<Option<String>, String> {
    let recovery: Option<Recovery> = files::read_json(&used.recovery()).ok();
    let given_up: HashSet<String> = files::read_json(&used.given_up()).unwrap_or_default();
    let agents = || AgentSpec { lost_s_max, ..agents_of(used, 0..used.nodes.len()) };
    let nodes = match (connect(agents()), &recovery) {
        (Ok(nodes), _) => nodes,
        (Err(message), Some(recovery)) if !recovery.survives_node && given_up.is_empty() => {
            return Err(format!("{message}; a part of the data is there"));
        }
        (Err(message), _) => {
            messages.warning(&message);
            let limit = Duration::from_secs(REACH_S_MAX);
            Nodes::connect_some(agents(), limit).map_err(|error| error.to_string())?.0
        }
    };
    let restored = restore(&nodes, used, (recovery, given_up), messages);
    nodes.all(&Request::Leave, CLAIM_MAX);
    nodes.close(restored.is_err());
    restored
}

fn restore(
    nodes: &Arc<Nodes>,
    used: &NodesUse,
    (recovery, given_up): (Option<Recovery>, HashSet<String>),
    messages: &dyn Messages,
) -> Result<Option<String>, String> {
    let survives_node = recovery.as_ref().is_some_and(|recovery| recovery.survives_node);
    // Without a record there is no engine, and the first node has what it has.
    let goes_on = survives_node || !given_up.is_empty() || recovery.is_none();
    let mut gone = gone(nodes, goes_on)?;
    gone.given_up = given_up;
    let Some(recovery) = recovery.filter(|one| !serve_without(&one.servers, &gone)) else {
        let here = (0, Request::Remount { probes: vec![probe_file(&used.mount(), 0, 0)] });
        return match nodes.ask(vec![here], REMOUNT_MAX, &|| true).pop() {
            Some(Ok(Answer::Failed { message, .. }) | Err(message)) => {
                Err(format!("cannot mount the namespace again: {message}"))
            }
            _ => Ok(None),
        };
    };
    if let Some(node) = gone.lost.iter().min() {
        return Err(format!(
            "{} cannot be started again without node {}, which has not answered",
            used.engine, used.nodes[*node]
        ));
    }
    let ended = gone.ended.into_iter().collect::<BTreeSet<_>>();
    let ended = ended.into_iter().collect::<Vec<_>>().join(", ");
    let plan = recovery.plan.map_err(|why| format!("{ended} ended: {why}"))?;
    messages
        .note(&format!("engine {}: {ended} ended; starting it again with its data", used.engine));
    let left = stop(nodes, used, false);
    if !left.is_empty() {
        return Err(format!("cannot start {} again: {}", used.engine, left.join("; ")));
    }
    runner::carry_out(&plan, nodes, &|| true)
        .map_err(|error| format!("cannot start {} again: {error}", used.engine))?;
    Ok(Some(ended))
}

/// The servers that ended, and with `survives_node` the nodes that lost the job.
fn gone(nodes: &Arc<Nodes>, survives_node: bool) -> Result<MissingServers, String> {
    let answers = nodes.all(&Request::Health { probes: Vec::new() }, CLAIM_MAX);
    let mut gone = MissingServers::default();
    for (node, answer) in answers.into_iter().enumerate() {
        match answer {
            Ok(Answer::Health(health)) => {
                let servers = health.ended.into_iter().filter(|step| step.role == Role::Server);
                gone.ended.extend(servers.map(|step| step.id));
            }
            Ok(_) => return Err(UNEXPECTED.to_owned()),
            Err(_) if survives_node => drop(gone.lost.insert(node)),
            Err(failure) => return Err(described(failure)),
        }
    }
    Ok(gone)
}

/// Stops and removes what an earlier session left on nodes; returns the leftovers, with the node.
pub fn remove_left(used: &NodesUse) -> Vec<String> {
    let remove = |node: usize| match connect(agents_of(used, node..node + 1)) {
        Ok(one) => {
            let left = stop_each(&one, true, &|_| may_be_left(used, node));
            one.close(!left.is_empty());
            left
        }
        Err(message) => vec![format!("{message}; {}", may_be_left(used, node))],
    };
    thread::scope(|scope| {
        let start = |node| threads::spawn_scoped(scope, move || remove(node));
        let removals: Vec<_> = (0..used.nodes.len()).map(start).collect();
        let ended = removals.into_iter().map(|started| match started {
            Ok(thread) => thread.join().unwrap_or_else(|_| vec!["a thread panicked".to_owned()]),
            Err(error) => vec![error.to_string()],
        });
        ended.flatten().collect()
    })
}

/// How nodes of an earlier `forebay run` are reached.
fn agents_of(used: &NodesUse, nodes: Range<usize>) -> AgentSpec {
    let of_node = |words: &Vec<String>| words.iter().map(Into::into).collect();
    AgentSpec {
        names: used.nodes[nodes.clone()].to_vec(),
        commands: used.commands[nodes].iter().map(of_node).collect(),
        directory: used.directory.clone(),
        lost_s_max: CLEAN_LOST_S_MAX,
    }
}

fn connect(agents: AgentSpec) -> Result<Arc<Nodes>, String> {
    let limit = Duration::from_secs(REACH_S_MAX);
    Nodes::connect(agents, limit, &|| true).map_err(|error| error.to_string())
}

pub(crate) fn described(failure: NodeFailure) -> String {
    format!("node {}: {}", failure.node, failure.message)
}

/// Stops all steps on all nodes; returns the leftovers, with the node.
pub(crate) fn stop(nodes: &Arc<Nodes>, used: &NodesUse, remove: bool) -> Vec<String> {
    stop_each(nodes, remove, &|node| may_be_left(used, node))
}

fn stop_each(
    nodes: &Arc<Nodes>,
    remove: bool,
    may_be_left: &dyn Fn(usize) -> String,
) -> Vec<String> {
    let mut left = Vec::new();
    for (node, answer) in nodes.all(&Request::Stop { remove }, STOP_MAX).into_iter().enumerate() {
        let name = nodes.name(node);
        match answer {
            Ok(Answer::Stopped { left: remaining }) => {
                left.extend(remaining.into_iter().map(|what| format!("node {name}: {what}")));
            }
            Ok(_) => left.push(format!("node {name}: {UNEXPECTED}")),
            Err(failure) => left.push(format!("{}; {}", described(failure), may_be_left(node))),
        }
    }
    left
}

/// What a node that does not answer may still have.
fn may_be_left(used: &NodesUse, node: usize) -> String {
    let directories = [Some(&used.directory), used.data.get(node)];
    let paths: Vec<_> =
        directories.into_iter().flatten().map(|path| path.display().to_string()).collect();
    format!("processes, the mount and {} may be left there", paths.join(" and "))
}
