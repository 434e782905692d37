//! `dwstat why TOKEN`: what `forebay why` asks for through `scontrol show bbstat`. Whoever can run `scontrol` sees it, so
//! it has no path and no error text of a user: those are in Slurm's reason of the job, which Slurm shows to whom the
//! site allows it.

use serde::Serialize;

use crate::context::Context;
use crate::progress::{self, Staging};
use crate::{Error, Phase, Session};

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
    /// The node that stages and removes its data.
    node: String,
    /// Whether that node answered the last time; none if nobody asked.
    node_is_online: Option<bool>,
    /// Whether something went wrong.
    has_problem: bool,
    /// Whether there are directives to stage out.
    has_stage_out: bool,
    staging: Option<Staging>,
}

#[derive(Serialize)]
struct Pool {
    name: String,
    granularity_bytes: u64,
    quantity: u64,
    free: u64,
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

/// One line of JSON.
pub(super) fn why(context: &Context, token: &str) -> Result<String, Error> {
    let sessions = context.database.sessions()?;
    let nodes = context.database.nodes()?;
    let of_session = |session: &Session| {
        let node = session.node.split(':').next().unwrap_or_default().to_owned();
        let known = nodes.iter().find(|(name, _)| *name == node);
        Allocation {
            user: forebay_host::users::user_named(session.user),
            pool: session.pool.clone(),
            capacity_bytes: session.capacity_bytes(),
            phase: session.phase,
            node_is_online: known.map(|(_, is_online)| *is_online),
            node,
            has_problem: session.problem.is_some(),
            has_stage_out: !session.plan.stage_out.is_empty(),
            staging: progress::of(&context.site, session.id),
        }
    };
    let allocation = sessions.iter().find(|session| session.token == token).map(of_session);
    let drained = context.database.drained()?;
    let pools = context.site.pools.iter().map(|pool| {
        let mut held: Vec<_> = sessions
            .iter()
            .filter(|session| session.pool == pool.name && session.grains > 0)
            .collect();
        held.sort_by_key(|session| std::cmp::Reverse(session.capacity_bytes()));
        let holder = |session: &&Session| Holder {
            token: session.token.clone(),
            user: forebay_host::users::user_named(session.user),
            capacity_bytes: session.capacity_bytes(),
            phase: session.phase,
        };
        Ok(Pool {
            name: pool.name.clone(),
            granularity_bytes: pool.granularity_bytes,
            quantity: pool.quantity,
            free: context.database.free_grains(pool)?,
            is_drained: drained.contains(&pool.name),
            allocations: held.iter().take(NAMED_MAX).map(holder).collect(),
        })
    });
    let why = Why { allocation, pools: pools.collect::<Result<_, Error>>()? };
    serde_json::to_string(&why).map_err(|error| Error::new(error.to_string()))
}
