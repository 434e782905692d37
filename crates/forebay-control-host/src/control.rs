//! The site's own commands: the status, draining a pool, delivering kept results, removing leftovers.
//! Removes an allocation under the lock of its token, and never undelivered results whose removal had not begun.
//! Never removes a directory that belongs to no allocation, unless the caller wants to `discard` it.

use std::path::Path;
use std::time::Duration;

use forebay_host::users;
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Context;
use crate::ended_jobs;
use crate::functions::{deliver, first_answer, remove_directory};
use crate::nodes::{Pause, TimeLimits, new_attempt};
use crate::token_lock::TokenLock;
use crate::{Phase, Session, Share};
use forebay_site::messages::{Operation, Outcome, PoolAllocation};
use forebay_site::{Error, NoAnswer, NodeAddress, Pool, PoolKind};

/// What a site has.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Status {
    /// The pools, in the order of the configuration.
    pub pools: Vec<PoolStatus>,
    /// Allocations of jobs and persistent ones, the oldest first.
    pub allocations: Vec<AllocationStatus>,
    /// Nodes that were asked, and whether they answered the last time.
    pub nodes: Vec<NodeStatus>,
    /// Users and groups of the configuration that nobody knows here.
    pub unknown_names: Vec<String>,
}

/// A pool.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PoolStatus {
    /// The name.
    pub name: String,
    /// Its directory.
    pub path: String,
    /// The size of a granule.
    pub granularity_bytes: u64,
    /// Granules for jobs.
    pub quantity: u64,
    /// Granules that allocations have.
    pub used: u64,
    /// Granules that no job gets.
    pub reserve: u64,
    /// Whether it gives nothing to new jobs.
    pub is_drained: bool,
}

/// An allocation.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AllocationStatus {
    /// The ID of the job, or the name of a persistent allocation.
    pub token: String,
    /// The owner.
    pub user: String,
    /// The group whose members may use a persistent allocation, too.
    pub group: Option<String>,
    /// The pool.
    pub pool: String,
    /// The size.
    pub capacity_bytes: u64,
    /// How far it is.
    pub phase: Phase,
    /// The node that stages and removes its data; empty if each node of the job has a directory of its own.
    pub node: String,
    /// The directories on nodes, in pools whose space is in the nodes.
    pub shares: Vec<ShareStatus>,
    /// Its directory.
    pub directory: String,
    /// When it was made, in seconds since 1970.
    pub created_unix_s: u64,
    /// What last went wrong.
    pub problem: Option<String>,
}

/// The directory of an allocation on one node.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ShareStatus {
    /// The node.
    pub node: String,
    /// Its size.
    pub capacity_bytes: u64,
    /// Whether its results are at their destinations.
    pub is_delivered: bool,
}

/// A node.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NodeStatus {
    /// The name.
    pub name: String,
    /// Whether it answered the last time.
    pub is_online: bool,
}

/// What a check of the pools found and removed.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Reaped {
    /// Allocations whose removal was interrupted, and those of ended jobs that Slurm did not remove. They are gone now.
    pub removed: Vec<String>,
    /// Directories that belong to no allocation.
    pub orphans: Vec<Orphan>,
    /// Allocations whose directory is gone.
    pub missing: Vec<String>,
    /// What failed, with the reason.
    pub failed: Vec<String>,
}

/// A directory that belongs to no allocation.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Orphan {
    /// The pool.
    pub pool: String,
    /// The node that has it; none for a directory that all nodes see.
    pub node: Option<String>,
    /// Its path.
    pub path: String,
    /// The owner.
    pub owner: String,
    /// Whether it was removed now.
    pub is_removed: bool,
}

/// Pools, allocations and nodes, from the state alone.
///
/// # Errors
/// If the configuration or the state cannot be used.
pub fn status() -> Result<Status, Error> {
    let context = Context::open()?;
    let drained = context.database.drained()?;
    let pools = context.site.pools.iter().map(|pool| {
        Ok(PoolStatus {
            name: pool.name.clone(),
            path: pool.path.display().to_string(),
            granularity_bytes: pool.granularity_bytes,
            quantity: pool.quantity,
            used: context.database.used_granules(pool)?,
            reserve: pool.reserve,
            is_drained: drained.contains(&pool.name),
        })
    });
    let nodes = context.database.nodes()?.into_iter();
    let shares = context.database.shares(None)?;
    let sessions = context.database.sessions()?;
    Ok(Status {
        pools: pools.collect::<Result<_, Error>>()?,
        allocations: sessions.iter().map(|one| AllocationStatus::of(one, &shares)).collect(),
        nodes: nodes.map(|(name, is_online)| NodeStatus { name, is_online }).collect(),
        unknown_names: context.site.unknown_names(),
    })
}

impl AllocationStatus {
    fn of(session: &Session, shares: &[Share]) -> Self {
        let shares = shares.iter().filter(|share| share.session == session.id);
        Self {
            token: session.token.clone(),
            user: users::user_named(session.user),
            group: session.plan.group.map(users::group_named),
            pool: session.pool.clone(),
            capacity_bytes: session.capacity_bytes(),
            phase: session.phase,
            node: session.node.clone(),
            shares: shares.map(ShareStatus::of).collect(),
            directory: session.directory(),
            created_unix_s: session.created_unix_s,
            problem: session.problem.clone(),
        }
    }
}

impl ShareStatus {
    fn of(share: &Share) -> Self {
        let Share { node, bytes, is_delivered, .. } = share;
        Self { node: node.clone(), capacity_bytes: *bytes, is_delivered: *is_delivered }
    }
}

/// Gives nothing of a pool to new jobs, or gives again. Returns the tokens of allocations that are still in it.
///
/// # Errors
/// If there is no such pool, or the state cannot be written.
pub fn drain(pool: &str, undo: bool) -> Result<Vec<String>, Error> {
    let mut context = Context::open()?;
    context.site.pool(pool)?;
    context.database.set_drained(pool, !undo)?;
    context.log.line(&format!(
        "control: pool {pool} is {}",
        if undo { "in use again" } else { "drained" }
    ));
    let sessions = context.database.sessions()?.into_iter();
    Ok(sessions
        .filter(|session| {
            session.pool == pool && session.granules > 0 && session.phase != Phase::Waiting
        })
        .map(|session| session.token)
        .collect())
}

/// Stages the kept results of a job out once more.
///
/// # Errors
/// If the job has none, or a result is still not at its destination.
pub fn deliver_results(token: &str) -> Result<(), Error> {
    let mut context = Context::open()?;
    let session = context.session(token)?;
    if session.phase == Phase::StagedOut {
        return Ok(());
    }
    // Slurm has lost a job whose allocation was set aside, so it does not run any more.
    if session.phase < Phase::Ended && !session.is_set_aside() {
        let error =
            Error::new(format!("job {token} has not ended: its allocation is {}", session.phase));
        return Err(error.with_hint("its results are staged out when it has ended"));
    }
    let limits = TimeLimits::of(&context.site, Duration::ZERO);
    let delivered = deliver(&mut context, &session, &limits).map(drop);
    let said = delivered.as_ref().err().map_or_else(|| "ok".to_owned(), ToString::to_string);
    context.log.line(&format!("control: deliver {token}: {said}"));
    delivered
}

/// Completes interrupted removals, removes the allocations of ended jobs that Slurm left, and looks for directories that
/// belong to no allocation. With `discard` it removes these, too.
///
/// # Errors
/// If the configuration or the state cannot be used.
pub fn reap(discard: bool) -> Result<Reaped, Error> {
    let mut context = Context::open()?;
    let mut reaped = Reaped::default();
    let sessions = context.database.sessions()?;
    let left = ended_jobs::of_ended_jobs(&sessions).unwrap_or_else(|error| {
        reaped.failed.push(error.to_string());
        Vec::new()
    });
    for session in sessions {
        if let Some(why) = out_of_reach(&context, &session) {
            reaped.failed.push(why);
            continue;
        }
        let is_delivered = session.is_set_aside() && session.phase == Phase::StagedOut;
        let is_left = left.iter().any(|one| one.id == session.id);
        if is_delivered || is_left || matches!(session.phase, Phase::Creating | Phase::Removing) {
            match complete_removal(&mut context, &session, is_left) {
                Ok(true) => reaped.removed.push(session.token),
                Ok(false) => {}
                Err(error) => reaped.failed.push(format!("{}: {error}", session.token)),
            }
        }
    }
    for pool in context.site.pools.clone() {
        if let Err(error) = look_into(&mut context, &pool, discard, &mut reaped) {
            reaped.failed.push(format!("pool {}: {error}", pool.name));
        }
    }
    let (removed, orphans) = (reaped.removed.len(), reaped.orphans.len());
    context
        .log
        .line(&format!("control: reap removed {removed} allocations and found {orphans} orphans"));
    Ok(reaped)
}

fn is_in(session: &Session, pool: &Pool) -> bool {
    session.pool == pool.name && Path::new(&session.path) == pool.path
}

/// Why no node touches the allocation: its pool has another directory now, or is gone.
fn out_of_reach(context: &Context, session: &Session) -> Option<String> {
    let (token, directory, pool) = (&session.token, session.directory(), &session.pool);
    let now = match context.site.pool(pool) {
        Ok(found) if found.path == Path::new(&session.path) => return None,
        Ok(found) => format!("the pool {pool} is {} now", found.path.display()),
        Err(_) => format!("there is no pool {pool} any more"),
    };
    Some(format!(
        "{token} is in {directory}, and {now}; name {} in the configuration until it is removed",
        session.path
    ))
}

/// False if another call changed the allocation meanwhile, or if its job, which had ended, is there again.
fn complete_removal(
    context: &mut Context,
    session: &Session,
    is_of_ended_job: bool,
) -> Result<bool, Error> {
    let lock = TokenLock::take(&context.site, &session.token)?;
    let now = context.database.session(&session.token)?;
    let Some(session) = now.filter(|now| now.id == session.id && now.phase == session.phase) else {
        return Ok(false);
    };
    if is_of_ended_job && ended_jobs::of_ended_jobs(std::slice::from_ref(&session))?.is_empty() {
        return Ok(false);
    }
    context.database.begin_removal(&session, !is_of_ended_job)?;
    remove_directory(context, &session)?;
    context.database.forget(session.id)?;
    crate::progress::forget(&context.site, session.id);
    lock.discard()?;
    Ok(true)
}

fn look_into(
    context: &mut Context,
    pool: &Pool,
    discard: bool,
    reaped: &mut Reaped,
) -> Result<(), Error> {
    let before = names(context)?;
    let listed = list(context, pool, reaped)?;
    let after = names(context)?;
    for Listed { node, names } in &listed {
        for (name, owner) in names {
            if before.iter().chain(&after).any(|(known, _)| known == name) {
                continue;
            }
            let mut orphan = Orphan {
                pool: pool.name.clone(),
                node: (pool.kind == PoolKind::OnNode).then(|| node.name.clone()),
                path: format!("{}/{name}", pool.path.display()),
                owner: users::user_named(*owner),
                is_removed: false,
            };
            if discard {
                match discard_orphan(context, pool, (node, name), *owner) {
                    Ok(()) => orphan.is_removed = true,
                    Err(error) => reaped.failed.push(format!("{}: {error}", orphan.path)),
                }
            }
            reaped.orphans.push(orphan);
        }
    }
    let is_still = |name: &String| after.iter().any(|(still, _)| still == name);
    let known = before.into_iter().filter(|(name, session)| is_in(session, pool) && is_still(name));
    let shares = context.database.shares(None)?;
    for (name, session) in known {
        for Listed { node, names } in &listed {
            let address = node.to_string();
            let has_share = |share: &Share| share.session == session.id && share.node == address;
            if names.iter().any(|(there, _)| *there == name) {
                continue;
            }
            // The directory of a node is made when its share is taken already.
            if session.phase >= Phase::Running && shares.iter().any(has_share) {
                reaped.missing.push(format!("{} on {}", session.token, node.name));
            } else if session.has_directory() && session.phase > Phase::Creating {
                reaped.missing.push(session.token.clone());
            }
        }
    }
    Ok(())
}

/// A node of a pool, with the names and owners of its directories.
struct Listed {
    node: NodeAddress,
    names: Vec<(String, u32)>,
}

/// The directories in a pool: those of a node of it that answers, or those of each node.
fn list(context: &mut Context, pool: &Pool, reaped: &mut Reaped) -> Result<Vec<Listed>, Error> {
    let list = Operation::List { pool: pool.name.clone(), path: pool.path.display().to_string() };
    let names_in = |outcome| match outcome {
        Outcome::Names { names } => Ok(names),
        Outcome::Failed { reason, .. } => Err(Error::new(reason)),
        _ => Err(Error::new("a node answered another question")),
    };
    if pool.kind == PoolKind::Directory {
        // The node that answers also removes the orphans: the others may be down.
        let (node, answer) = first_answer(context, &pool.staging_nodes, &list)?;
        return Ok(vec![Listed { node, names: names_in(answer)? }]);
    }
    let requests = pool.staging_nodes.iter().map(|node| (node.clone(), list.clone()));
    let answers = context.ask_all(requests.collect())?;
    let mut found = Vec::new();
    for (node, answer) in pool.staging_nodes.iter().zip(answers) {
        match answer.map_err(NoAnswer::error).and_then(names_in) {
            Ok(names) => found.push(Listed { node: node.clone(), names }),
            Err(error) => {
                reaped.failed.push(format!("pool {} on {}: {error}", pool.name, node.name))
            }
        }
    }
    Ok(found)
}

fn names(context: &Context) -> Result<Vec<(String, Session)>, Error> {
    let sessions = context.database.sessions()?.into_iter();
    Ok(sessions.map(|session| (session.place().name, session)).collect())
}

fn discard_orphan(
    context: &mut Context,
    pool: &Pool,
    (node, name): (&NodeAddress, &str),
    owner: u32,
) -> Result<(), Error> {
    // A directory that root did not give away is empty, and whom it is for does not matter.
    let user = if owner == 0 { context.site.slurm_user.user } else { owner };
    let place = PoolAllocation {
        pool: pool.name.clone(),
        path: pool.path.display().to_string(),
        name: name.to_owned(),
        user,
        group: users::account_of(user)?.map_or(user, |account| account.group),
        is_shared: true, // what members left goes, too
        access: pool.access(),
        engine: pool.engine.clone(),
    };
    let (attempt, mut pause) = (new_attempt()?, Pause::shortest());
    loop {
        let (place, attempt) = (place.clone(), attempt.clone());
        let remove = Operation::Remove { place, attempt, is_made: true };
        match first_answer(context, std::slice::from_ref(node), &remove)?.1 {
            Outcome::Done { .. } => return Ok(()),
            Outcome::Failed { reason, .. } => return Err(Error::new(reason)),
            Outcome::Running { .. } => forebay_host::clock::sleep(pause.next()),
            _ => return Err(Error::new("a node answered another question")),
        }
    }
}
