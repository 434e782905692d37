//! `teardown`: removes the allocation of a job, or a persistent one. Without `--hurry`, results that are not at their
//! destinations are staged out first, or kept.

use std::time::Duration;

use forebay_host::clock;

use super::data_out::deliver;
use crate::call::Call;
use crate::context::Context;
use crate::nodes::{TimeLimits, Work, unfinished};
use crate::staging::StagingResult;
use crate::token_lock::TokenLock;
use crate::{Phase, Session};
use forebay_site::messages::{Operation, Outcome};
use forebay_site::{Error, NodeAddress};

/// Slurm ends a call after 300 s, and calls again.
pub(super) const WAIT: Duration = Duration::from_secs(240);

pub(super) fn teardown(context: &mut Context, call: &Call) -> Result<(), Error> {
    let token = call.token()?;
    let Some(session) = session_to_remove(context, token)? else { return Ok(()) };
    if !call.hurry && session.has_undelivered_results() {
        let until = Some(clock::now() + WAIT);
        let limits = TimeLimits { until, ..TimeLimits::of(&context.site, Duration::ZERO) };
        if let StagingResult::Incomplete(nodes) = deliver(context, &session, &limits)? {
            return Err(unfinished(&nodes));
        }
    }
    let lock = TokenLock::take(&context.site, token)?;
    let Some(session) = context.database.session(token)?.filter(|now| now.id == session.id) else {
        return Ok(()); // another call was faster
    };
    if session.phase != Phase::Removing {
        context.database.begin_removal(&session, call.hurry)?;
    }
    if let Err(error) = remove_directory(context, &session) {
        context.database.set_problem(session.id, Some(&error.to_string()))?;
        return Err(error);
    }
    context.database.forget(session.id)?;
    crate::progress::forget(&context.site, session.id);
    lock.discard()
}

/// What a token has. The set-up of a job that is cancelled may still run: it is waited for. One that begins after this
/// learns from Slurm that the job is over, and makes nothing.
fn session_to_remove(context: &Context, token: &str) -> Result<Option<Session>, Error> {
    if let Some(session) = context.database.session(token)? {
        return Ok(Some(session));
    }
    let lock = TokenLock::take(&context.site, token)?;
    let session = context.database.session(token)?;
    if session.is_none() {
        context.log.line(&format!("teardown {token}: there is nothing to remove"));
        lock.discard()?;
    }
    Ok(session)
}

/// Has its nodes remove the directories of an allocation, and waits for them.
///
/// # Errors
/// If something remains, or a node does not answer.
pub(crate) fn remove_directory(context: &mut Context, session: &Session) -> Result<(), Error> {
    let nodes = if session.is_on_nodes() {
        nodes_with_a_share(context, session)?
    } else if session.node.is_empty() {
        return Ok(()); // no node was asked to make it
    } else {
        vec![context.staging_node(session)?]
    };
    let shares = context.database.shares(Some(session.id))?;
    let capacity = shares.first().map_or(session.capacity_bytes(), |share| share.bytes);
    let made: Vec<_> =
        shares.iter().filter(|share| share.is_made).map(|share| share.node.as_str()).collect();
    let operation = |node: &NodeAddress, attempt: &str| Operation::Remove {
        place: session.place(),
        attempt: attempt.to_owned(),
        // The start of the job may have failed before all nodes made it.
        is_made: !session.is_on_nodes()
            || session.hosts > 0
            || made.contains(&node.to_string().as_str()),
    };
    let mut on_done = |context: &mut Context, node: &NodeAddress, outcome: Outcome| {
        if let Outcome::Done { bytes, note, .. } = outcome {
            note_removal(context, session, (bytes, capacity), note.as_deref());
        }
        match session.is_on_nodes() {
            true => context.database.drop_share(session.id, &node.to_string()),
            false => Ok(()),
        }
    };
    let usual = TimeLimits::of(&context.site, Duration::ZERO);
    let (silence, until) = (WAIT.min(usual.silence), Some(clock::now() + WAIT));
    let mut work = Work {
        session,
        operation: &operation,
        check: &|_| Ok(()),
        on_done: &mut on_done,
        shown: None,
        names_node: session.is_on_nodes(),
    };
    context.carry_out(nodes, &TimeLimits { silence, until, ..usual }, &mut work)?.check()
}

/// The nodes that have a directory of an allocation. One that the pool has not any more is gone, and its share with it.
fn nodes_with_a_share(context: &mut Context, session: &Session) -> Result<Vec<NodeAddress>, Error> {
    let mut nodes = Vec::new();
    for share in context.database.shares(Some(session.id))? {
        let node = context.node_named(&share.node)?;
        if context.site.pool(&session.pool)?.node(&node.name).is_some() {
            nodes.push(node);
            continue;
        }
        context.log.line(&format!(
            "warning: {}: {} is no node of the pool {} any more; what {} had there is given up",
            session.token,
            node.name,
            session.pool,
            session.directory()
        ));
        context.database.drop_share(session.id, &share.node)?;
    }
    Ok(nodes)
}

/// The capacity is accounted, not enforced by the file system: an allocation that was larger is named.
fn note_removal(
    context: &Context,
    session: &Session,
    (bytes, capacity): (u64, u64),
    note: Option<&str>,
) {
    let token = &session.token;
    if session.granules > 0 && bytes > capacity {
        let user = session.user;
        context.log.line(&format!(
            "warning: {token} of user {user} had {bytes} bytes in an allocation of {capacity}"
        ));
    }
    if let Some(note) = note {
        context.log.line(&format!("warning: {token}: {note}"));
    }
}
