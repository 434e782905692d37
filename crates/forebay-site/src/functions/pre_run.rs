//! `pre_run`: whether each node of the job sees its allocations.

use std::path::Path;
use std::time::Duration;

use forebay_host::{clock, files, threads};
use parking_lot::Mutex;

use super::place::RESTART;
use crate::call::Call;
use crate::client::Client;
use crate::context::Context;
use crate::messages::{Operation, Outcome, Place};
use crate::staging::{Pause, removed_meanwhile};
use crate::{Error, NoAnswer, NodeAddress, Phase};

/// Nodes asked at the same time.
const ASKED_MAX: usize = 32;
/// Nodes that an error names.
const NAMED_MAX: usize = 5;

pub(super) fn pre_run(context: &mut Context, call: &Call) -> Result<(), Error> {
    let session = context.session(call.token()?)?;
    let nodes = nodes(context, call)?;
    let is_staged = session.plan.stage_in.is_empty() && session.phase == Phase::Ready;
    if !is_staged && !matches!(session.phase, Phase::StagedIn | Phase::Running) {
        let (token, phase) = (&session.token, session.phase);
        return Err(Error::new(format!(
            "the allocation of {token} is {phase}: the job cannot start"
        )));
    }
    if context.site.checks_nodes {
        let used = context.database.used_by(session.id)?;
        let own = session.has_directory().then(|| session.place());
        let places: Vec<_> =
            own.into_iter().chain(used.iter().map(crate::Session::place)).collect();
        if !places.is_empty() {
            let wait = context.site.node_wait.min(RESTART);
            let seen = check(context.client()?, &nodes, &places, wait);
            let problem = seen.as_ref().err().map(ToString::to_string);
            context.database.set_problem(session.id, problem.as_deref())?;
            seen?;
        }
    }
    context.database.set_hosts(session.id, nodes.len() as u64)?;
    let from = [Phase::Ready, Phase::StagedIn, Phase::Running];
    if !context.database.advance(session.id, &from, Phase::Running)? {
        return Err(removed_meanwhile(&session.token));
    }
    Ok(())
}

/// The nodes of the job. Slurm writes one name in each line.
fn nodes(context: &Context, call: &Call) -> Result<Vec<NodeAddress>, Error> {
    let file = call.optional("--nodehostnamefile").or(call.optional("--nidlistfile"));
    let Some(file) = file else {
        return Ok(Vec::new());
    };
    let text = files::read_to_string(Path::new(file))?;
    let names = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let nodes = names.map(|name| NodeAddress::parse(name, context.site.node_port));
    nodes.collect::<Result<_, _>>().map_err(|error| Error::new(format!("{file}: {error}")))
}

/// Whether all nodes see the allocations.
fn check(
    client: &Client,
    nodes: &[NodeAddress],
    places: &[Place],
    wait: Duration,
) -> Result<(), Error> {
    let (next, failed) = (Mutex::new(nodes.iter()), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let Some(node) = next.lock().next() else { return };
            if let Some(error) =
                places.iter().find_map(|place| seen(client, node, place, wait).err())
            {
                failed.lock().push((node.name.clone(), error));
            }
        }
    };
    std::thread::scope(|scope| {
        // Where no further thread can be started, this one does the work.
        for _ in 1..nodes.len().min(ASKED_MAX) {
            if threads::spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
    match of_nodes(&failed.into_inner()) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// The error of the first node, with the names of all that failed, or of the first few.
fn of_nodes(failed: &[(String, Error)]) -> Option<Error> {
    let (_, first) = failed.first()?;
    if failed.len() == 1 {
        return Some(first.clone());
    }
    let names: Vec<_> = failed.iter().take(NAMED_MAX).map(|(name, _)| name.as_str()).collect();
    let more = if failed.len() > NAMED_MAX { ", ..." } else { "" };
    let nodes = format!("{} nodes ({}{more})", failed.len(), names.join(", "));
    Some(Error { message: format!("{nodes}: {}", first.message), ..first.clone() })
}

/// A daemon that does not answer may be started again just now.
fn seen(client: &Client, node: &NodeAddress, place: &Place, wait: Duration) -> Result<(), Error> {
    let (mut pause, began) = (Pause::usual(), clock::now());
    loop {
        match client.ask(node, Operation::Check { place: place.clone() }) {
            Ok(Outcome::Done { .. }) => return Ok(()),
            Ok(Outcome::Failed { reason, .. }) => {
                return Err(Error::new(format!("{}: {reason}", node.name)));
            }
            Ok(_) => return Err(Error::new(format!("{node} answered another question"))),
            Err(NoAnswer::Unreachable(_) | NoAnswer::Lost(_)) if began.elapsed() < wait => {
                clock::sleep(pause.next());
            }
            Err(silent) => return Err(silent.error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_names_failed_nodes_and_dots_stand_only_for_more() {
        let failed = |count: usize| {
            let nodes = (1..=count).map(|node| (format!("n{node}"), Error::new("down")));
            of_nodes(&nodes.collect::<Vec<_>>()).map(|error| error.to_string())
        };
        assert_eq!(failed(0), None);
        assert_eq!(failed(1).expect("error"), "down");
        assert_eq!(failed(2).expect("error"), "2 nodes (n1, n2): down");
        assert_eq!(failed(6).expect("error"), "6 nodes (n1, n2, n3, n4, n5, ...): down");
    }
}
