//! `dwstat why TOKEN`: what `forebay why` asks for through `scontrol show bbstat`. Whoever can run `scontrol` sees it, so
//! it has no path and no error text of a user: those are in Slurm's reason of the job, which Slurm shows to whom the
//! site allows it.

use serde::Serialize;

use crate::context::Context;
use crate::progress::{self, Staging};
use crate::{Phase, Session, Share};
use forebay_site::Error;

/// Allocations of a pool that are named, the largest first.
const NAMED_MAX: usize = 20;

#[derive(Serialize)]
struct Why {
    /// None if there is no allocation with this token.
    allocation: Option<Allocation>,
    pools: Vec<Pool>,
}

#[derive(Serialize)]
struct Allocation {
    user: String,
    pool: String,
    capacity_bytes: u64,
    phase: Phase,
    /// Whether each node of the job has its own part, from its start on.
    is_on_nodes: bool,
    /// The nodes that stage and remove its data.
    nodes: Vec<Node>,
    /// The largest other allocations that it waits for: on nodes of the job that have no room, or of the user.
    in_the_way: Vec<Holder>,
    /// Whether something went wrong.
    has_problem: bool,
    /// Whether there are directives to stage out.
    has_stage_out: bool,
    staging: Option<Staging>,
}

#[derive(Serialize)]
struct Node {
    name: String,
    /// Whether it answered the last time; none if nobody asked.
    is_online: Option<bool>,
    /// Whether the results on it are at their destinations.
    is_delivered: bool,
}

#[derive(Serialize)]
struct Pool {
    name: String,
    granularity_bytes: u64,
    quantity: u64,
    free: u64,
    /// The most that one user has at a time.
    user_bytes_max: Option<u64>,
    is_drained: bool,
    /// The largest allocations.
    allocations: Vec<Holder>,
}

#[derive(Serialize)]
struct Holder {
    token: String,
    user: String,
    capacity_bytes: u64,
    phase: Phase,
}

impl Holder {
    /// The largest.
    fn largest<'a>(sessions: impl Iterator<Item = &'a Session>) -> Vec<Self> {
        let mut held: Vec<_> = sessions.collect();
        held.sort_by_key(|session| std::cmp::Reverse(session.capacity_bytes()));
        let holder = |session: &&Session| Self {
            token: session.token.clone(),
            user: forebay_host::users::user_named(session.user),
            capacity_bytes: session.capacity_bytes(),
            phase: session.phase,
        };
        held.iter().take(NAMED_MAX).map(holder).collect()
    }
}

/// One line of JSON.
pub(super) fn why(context: &Context, token: &str) -> Result<String, Error> {
    let sessions = context.database.sessions()?;
    let asked = sessions.iter().find(|session| session.token == token);
    let allocation = asked.map(|asked| allocation(context, asked, &sessions)).transpose()?;
    let drained = context.database.drained()?;
    let pools = context.site.pools.iter().map(|pool| {
        let held = sessions.iter().filter(|session| {
            let has_space = session.granules > 0 && session.phase != Phase::Waiting;
            session.pool == pool.name && has_space
        });
        Ok(Pool {
            name: pool.name.clone(),
            granularity_bytes: pool.granularity_bytes,
            quantity: pool.quantity,
            free: context.database.free_granules(pool)?,
            user_bytes_max: pool.user_bytes_max,
            is_drained: drained.contains(&pool.name),
            allocations: Holder::largest(held),
        })
    });
    let why = Why { allocation, pools: pools.collect::<Result<_, Error>>()? };
    serde_json::to_string(&why).map_err(|error| Error::new(error.to_string()))
}

fn allocation(
    context: &Context,
    session: &Session,
    sessions: &[Session],
) -> Result<Allocation, Error> {
    let online = context.database.nodes()?;
    let shares = context.database.shares(None)?;
    let node = |address: &str, is_delivered: bool| {
        let name = context.node_named(address)?.name;
        let is_online = online.iter().find(|(known, _)| *known == name).map(|(_, is)| *is);
        Ok(Node { name, is_online, is_delivered })
    };
    let own = shares.iter().filter(|share| share.session == session.id);
    let mut nodes = own
        .map(|share| node(&share.node, share.is_delivered))
        .collect::<Result<Vec<_>, Error>>()?;
    if !session.node.is_empty() {
        nodes.clear(); // one node stages for all of an engine
        nodes.push(node(&session.node, session.phase == Phase::StagedOut)?);
    }
    let staging = progress::of(&context.site, session.id);
    let full = staging.as_ref().map(|staging| staging.full_nodes.as_slice()).unwrap_or_default();
    let is_in_the_way = |other: &&Session| {
        let on_full_node = |share: &Share| {
            let node = context.node_named(&share.node);
            share.session == other.id && node.is_ok_and(|node| full.contains(&node.name))
        };
        let is_of_user = session.phase == Phase::Waiting
            && other.phase != Phase::Waiting
            && other.user == session.user
            && other.granules > 0;
        let is_other = other.id != session.id && other.pool == session.pool;
        is_other && (is_of_user || shares.iter().any(on_full_node))
    };
    Ok(Allocation {
        user: forebay_host::users::user_named(session.user),
        pool: session.pool.clone(),
        capacity_bytes: session.capacity_bytes(),
        phase: session.phase,
        is_on_nodes: session.is_on_nodes(),
        nodes,
        in_the_way: Holder::largest(sessions.iter().filter(is_in_the_way)),
        has_problem: session.problem.is_some(),
        has_stage_out: !session.plan.stage_out.is_empty(),
        staging,
    })
}
