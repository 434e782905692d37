//! `pre_run`: whether each node of the job sees its allocations.

use std::path::Path;

use forebay_host::{files, threads};
use parking_lot::Mutex;

use crate::call::Call;
use crate::client::Client;
use crate::context::Context;
use crate::messages::{Operation, Outcome, Place};
use crate::{Error, NodeAddress, Phase};

/// Nodes asked at the same time.
const ASKED_MAX: usize = 32;

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
            let seen = check(context.client()?, &nodes, &places);
            let problem = seen.as_ref().err().map(ToString::to_string);
            context.database.set_problem(session.id, problem.as_deref())?;
            seen?;
        }
    }
    context.database.set_hosts(session.id, nodes.len() as u64)?;
    let from = [Phase::Ready, Phase::StagedIn, Phase::Running];
    if !context.database.advance(session.id, &from, Phase::Running)? {
        return Err(Error::new(format!(
            "the allocation of {} was removed meanwhile",
            session.token
        )));
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

/// Names the first few nodes that do not see an allocation, with the reason of the first.
fn check(client: &Client, nodes: &[NodeAddress], places: &[Place]) -> Result<(), Error> {
    let (next, failed) = (Mutex::new(nodes.iter()), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let Some(node) = next.lock().next() else { return };
            if let Some(error) = places.iter().find_map(|place| seen(client, node, place).err()) {
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
    let failed = failed.into_inner();
    let Some((_, first)) = failed.first() else { return Ok(()) };
    let mut error = first.clone();
    if failed.len() > 1 {
        let names: Vec<_> = failed.iter().take(5).map(|(name, _)| name.as_str()).collect();
        error.message =
            format!("{} nodes ({} ...): {}", failed.len(), names.join(", "), error.message);
    }
    Err(error)
}

fn seen(client: &Client, node: &NodeAddress, place: &Place) -> Result<(), Error> {
    let operation = Operation::Check { place: place.clone() };
    match client.ask(node, operation).map_err(crate::NoAnswer::error)? {
        Outcome::Done { .. } => Ok(()),
        Outcome::Failed { reason, .. } => Err(Error::new(format!("{}: {reason}", node.name))),
        _ => Err(Error::new(format!("{node} answered another question"))),
    }
}
