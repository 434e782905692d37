//! `pre_run`: makes the directories of nodes, starts an engine on them, and checks that each node of the job sees its
//! allocations.

use std::path::Path;
use std::time::{Duration, Instant};

use forebay_directive::Direction;
use forebay_host::{clock, files};

use crate::call::Call;
use crate::context::Context;
use crate::nodes::{
    OnDone, Pause, RESTART, RequestTo, TimeLimits, Unfinished, Work, names_of, unfinished,
};
use crate::progress::ProgressFile;
use crate::staging::{StagingResult, removed_meanwhile};
use crate::state::Taken;
use crate::{Phase, Session};
use forebay_site::messages::{Operation, PoolAllocation};
use forebay_site::{Error, NodeAddress, Pool};

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
    if session.is_on_nodes() && session.phase != Phase::Running {
        let started = start_on_nodes(context, &session, &nodes);
        note_problem(context, &session, &started)?;
        started?;
    }
    if context.site.checks_nodes {
        let used = context.database.used_by(session.id)?;
        let own = session.has_directory().then(|| session.place());
        let places: Vec<_> =
            own.into_iter().chain(used.iter().map(crate::Session::place)).collect();
        if !places.is_empty() {
            let seen = check(context, &session, nodes.clone(), &places);
            note_problem(context, &session, &seen)?;
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

/// Stores why the job cannot start. Slurm may have called again meanwhile, after slurmctld was killed, and started it.
fn note_problem(
    context: &mut Context,
    session: &Session,
    done: &Result<(), Error>,
) -> Result<(), Error> {
    let problem = done.as_ref().err().map(ToString::to_string);
    match session.phase {
        Phase::Running => context.database.set_problem(session.id, problem.as_deref()),
        _ => context.database.set_problem_of_start(session.id, problem.as_deref()),
    }
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
    context: &mut Context,
    session: &Session,
    mut nodes: Vec<NodeAddress>,
    places: &[PoolAllocation],
) -> Result<(), Error> {
    let mut rest = Unfinished::default();
    for place in places {
        let user = session.user;
        // A member must be one on each node. The owner may have left the group meanwhile.
        let group = if place.user == user { session.group } else { place.group };
        let operation =
            |_: &NodeAddress, _: &str| Operation::Check { place: place.clone(), user, group };
        let nothing = &mut |_: &mut Context, _: &NodeAddress, _| Ok(());
        let failed =
            carry_out(context, session, (nodes.clone(), &operation), nothing, None)?.failed;
        nodes.retain(|node| failed.iter().all(|(other, _)| other != node));
        rest.failed.extend(failed);
    }
    rest.check()
}

/// Has nodes do what takes no long time. A daemon that does not answer may be started again just now.
fn carry_out(
    context: &mut Context,
    session: &Session,
    (nodes, operation): (Vec<NodeAddress>, &RequestTo),
    on_done: OnDone<'_>,
    shown: Option<&mut ProgressFile>,
) -> Result<Unfinished, Error> {
    let usual = TimeLimits::of(&context.site, Duration::ZERO);
    let limits = TimeLimits { silence: usual.silence.min(RESTART), ..usual };
    let mut work = Work {
        session,
        operation,
        check: &|context| context.check_kept(session),
        on_done,
        shown,
        names_node: true,
    };
    context.carry_out(nodes, &limits, &mut work)
}

/// Makes the directory of each node of the job, and has each node copy the input into its own.
fn start_on_nodes(
    context: &mut Context,
    session: &Session,
    nodes: &[NodeAddress],
) -> Result<(), Error> {
    let until = clock::now() + context.site.start_wait;
    let pool = context.site.pool(&session.pool)?.clone();
    let nodes = nodes_of_pool(&pool, nodes)?;
    if session.has_engine() {
        refuse_other_nodes(context, session, &nodes)?;
    }
    let copies = u64::from(session.plan.redundancy.max(1));
    let capacity_bytes = session.capacity_bytes() * copies / nodes.len() as u64;
    let mut shown = ProgressFile::of(&context.site, session, Direction::In, false);
    take_shares(context, session, &pool, (&nodes, capacity_bytes), until, &mut shown)?;
    let create = |_: &NodeAddress, _: &str| Operation::Create {
        place: session.place(),
        capacity_bytes,
        key: session.plan.key.clone(),
    };
    let mut made = Vec::new();
    let mut note_made = |_: &mut Context, node: &NodeAddress, _| {
        made.push(node.to_string());
        Ok(())
    };
    let work = (nodes.clone(), &create as &RequestTo);
    let created = carry_out(context, session, work, &mut note_made, Some(&mut shown));
    context.database.set_made(session.id, &made)?;
    created?.check()?;
    drop(shown);
    let limits = TimeLimits { until: Some(until), ..TimeLimits::of(&context.site, Duration::ZERO) };
    let mut session = session.clone();
    if session.has_engine() {
        session.node = start_engine(context, &session, &nodes, &limits)?;
    }
    match context.copy(&session, Direction::In, &limits)? {
        StagingResult::Completed => Ok(()),
        StagingResult::Incomplete(nodes) => Err(unfinished(&nodes)),
    }
}

/// A former call may have started the engine, and slurmctld may have lost that it did.
fn refuse_other_nodes(
    context: &Context,
    session: &Session,
    nodes: &[NodeAddress],
) -> Result<(), Error> {
    let shares = context.database.shares(Some(session.id))?;
    let is_known = |node: &NodeAddress| shares.iter().any(|share| share.node == node.to_string());
    let first = nodes.first().map(ToString::to_string).unwrap_or_default();
    let is_same = shares.len() == nodes.len()
        && nodes.iter().all(is_known)
        && (session.node.is_empty() || session.node == first);
    if shares.is_empty() || is_same {
        return Ok(());
    }
    let error = Error::new("the engine of the job was started on other nodes before");
    Err(error.with_hint(format!("scancel {}, and submit the job again", session.token)))
}

/// Has the first node start the engine on all of them. From now on it stages for all.
fn start_engine(
    context: &mut Context,
    session: &Session,
    nodes: &[NodeAddress],
    limits: &TimeLimits,
) -> Result<String, Error> {
    let first = nodes[0].clone();
    let address = first.to_string();
    context.database.set_node(session.id, &address)?;
    let operation = |_: &NodeAddress, attempt: &str| Operation::Start {
        place: session.place(),
        nodes: nodes.iter().map(|node| (node.name.clone(), node.port)).collect(),
        capacity_bytes: session.capacity_bytes(),
        redundancy: session.plan.redundancy,
        attempt: attempt.to_owned(),
    };
    let mut work = Work {
        session,
        operation: &operation,
        check: &|context| context.check_kept(session),
        on_done: &mut |_, _, _| Ok(()),
        shown: None,
        names_node: false,
    };
    let limits = TimeLimits { retry: RESTART, ..*limits };
    context.carry_out(vec![first], &limits, &mut work)?.check()?;
    Ok(address)
}

/// The nodes of the job, with the ports that the pool names.
fn nodes_of_pool(pool: &Pool, nodes: &[NodeAddress]) -> Result<Vec<NodeAddress>, Error> {
    if nodes.is_empty() {
        return Err(Error::new("Slurm names no node of the job")
            .with_hint("pre_run needs --nodehostnamefile"));
    }
    let (known, unknown): (Vec<_>, Vec<_>) =
        nodes.iter().map(|node| pool.node(&node.name).ok_or(node)).partition(Result::is_ok);
    let unknown: Vec<_> = unknown.into_iter().filter_map(Result::err).collect();
    if !unknown.is_empty() {
        let (names, pool) = (names_of(unknown.into_iter()), &pool.name);
        let error = Error::new(format!("the pool {pool} has no storage on {names}"));
        return Err(error.with_hint("choose nodes that have it, with --constraint or --nodelist"));
    }
    Ok(known.into_iter().filter_map(Result::ok).cloned().collect())
}

/// Waits until each node has room for its part of the allocation.
fn take_shares(
    context: &mut Context,
    session: &Session,
    pool: &Pool,
    (nodes, bytes): (&[NodeAddress], u64),
    until: Instant,
    shown: &mut ProgressFile,
) -> Result<(), Error> {
    let mut pause = Pause::shortest();
    loop {
        match context.database.take_shares(session.id, pool, nodes, bytes)? {
            Taken::All => {
                shown.staging.full_nodes.clear();
                return Ok(());
            }
            Taken::Removed => return Err(removed_meanwhile(&session.token)),
            Taken::Full(full) if clock::now() > until => {
                let full: Vec<_> = full.iter().filter_map(|name| pool.node(name)).collect();
                let names = names_of(full.into_iter());
                let (share, name) = (indicatif::HumanBytes(bytes), &pool.name);
                let error =
                    Error::new(format!("the pool {name} has no room for {share} on {names}"));
                return Err(error.with_hint(
                    "results of earlier jobs are still there; when they are delivered: scontrol release, or ask for less",
                ));
            }
            Taken::Full(full) => {
                shown.staging.full_nodes = full;
                shown.show(std::iter::empty(), false);
                clock::sleep(pause.next());
            }
        }
    }
}
