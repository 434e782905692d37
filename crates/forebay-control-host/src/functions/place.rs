//! Has a node of the pool make the directory of an allocation.
//! Assumes that the caller holds the lock of the token, and that the pool has a node.
//! Never asks a second node when the first one may have made the directory.

use forebay_host::clock;

use crate::context::Context;
use crate::nodes::{Pause, RESTART};
use crate::{Phase, Session};
use forebay_site::messages::{Operation, Outcome};
use forebay_site::{Error, NoAnswer, NodeAddress, Pool};

/// Has a node of the pool make the directory. The node is the one that stages, too.
///
/// # Errors
/// If no node makes it. The space is free again, unless a node may have made it.
pub(super) fn make_directory(
    context: &mut Context,
    session: Session,
    pool: &Pool,
) -> Result<(), Error> {
    if !session.has_directory() {
        context.database.advance(session.id, &[Phase::Creating], Phase::Ready)?;
        return Ok(());
    }
    let made = made_on_a_node(context, &session, pool);
    match made {
        Ok(()) => {
            context.database.advance(session.id, &[Phase::Creating], Phase::Ready)?;
            Ok(())
        }
        Err((error, is_certain)) => {
            if is_certain {
                context.database.forget(session.id)?;
            } else {
                context.database.set_problem(session.id, Some(&error.to_string()))?;
            }
            Err(error)
        }
    }
}

/// The error, and whether certainly no directory was made.
fn made_on_a_node(
    context: &mut Context,
    session: &Session,
    pool: &Pool,
) -> Result<(), (Error, bool)> {
    let is_new = session.node.is_empty();
    let turn = usize::try_from(session.id).unwrap_or_default() % pool.staging_nodes.len();
    let mut nodes: Vec<_> =
        pool.staging_nodes[turn..].iter().chain(&pool.staging_nodes[..turn]).cloned().collect();
    if !is_new {
        // An earlier call may have had it made there.
        nodes = vec![context.staging_node(session).map_err(|error| (error, false))?];
    }
    let (mut pause, began) = (Pause::shortest(), clock::now());
    let mut is_certain = is_new;
    loop {
        let mut silent = Error::new(format!("the pool {} has no staging node", pool.name));
        for node in nodes.clone() {
            context
                .database
                .set_node(session.id, &node.to_string())
                .map_err(|error| (error, is_certain))?;
            let (place, capacity_bytes) = (session.place(), session.capacity_bytes());
            match context.ask(&node, Operation::Create { place, capacity_bytes, key: None }) {
                Ok(Outcome::Done { .. }) => return Ok(()),
                Ok(Outcome::Failed { reason, .. }) => return Err((Error::new(reason), false)),
                Ok(_) => {
                    return Err((Error::new(format!("{node} answered another question")), false));
                }
                Err(NoAnswer::Unreachable(error)) => silent = error,
                Err(NoAnswer::Wrong(error)) => return Err((error, is_certain)),
                Err(NoAnswer::Lost(error)) => {
                    // It may have been made there, so no other node is asked.
                    (silent, is_certain, nodes) = (error, false, vec![node]);
                    break;
                }
            }
        }
        if began.elapsed() > context.site.node_wait.min(RESTART) {
            return Err((silent, is_certain));
        }
        clock::sleep(pause.next());
    }
}

/// Asks the nodes of a pool one after the other until one answers. Returns that node and its answer.
///
/// # Errors
/// If none answers within the time for a node, or the answer is an error.
pub(crate) fn first_answer(
    context: &mut Context,
    nodes: &[NodeAddress],
    operation: &Operation,
) -> Result<(NodeAddress, Outcome), Error> {
    let (mut pause, began) = (Pause::shortest(), clock::now());
    loop {
        let mut silent = Error::new("there is no node to ask");
        for node in nodes {
            match context.ask(node, operation.clone()) {
                Err(NoAnswer::Unreachable(error) | NoAnswer::Lost(error)) => silent = error,
                Err(NoAnswer::Wrong(error)) => return Err(error),
                Ok(outcome) => return Ok((node.clone(), outcome)),
            }
        }
        if began.elapsed() > context.site.node_wait.min(super::teardown::WAIT) {
            return Err(silent);
        }
        clock::sleep(pause.next());
    }
}
