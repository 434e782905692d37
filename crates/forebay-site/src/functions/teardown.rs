//! `teardown`: removes the allocation of a job, or a persistent one. Without `--hurry`, results that are not at their
//! destinations are staged out first, or kept.

use std::time::Duration;

use forebay_host::clock;

use super::data_out::deliver;
use crate::call::Call;
use crate::context::Context;
use crate::messages::{Operation, Outcome};
use crate::staging::{Patience, Pause, Waited, new_attempt};
use crate::token_lock::TokenLock;
use crate::{Error, NoAnswer, Phase, Session};

/// Slurm ends a call after 300 s, and calls again.
pub(super) const WAIT: Duration = Duration::from_secs(240);

pub(super) fn teardown(context: &mut Context, call: &Call) -> Result<(), Error> {
    let token = call.token()?;
    let Some(session) = context.database.session(token)? else {
        context.log.line(&format!("teardown {token}: there is nothing to remove"));
        return Ok(());
    };
    if !call.hurry && session.has_undelivered_results() {
        let until = Some(clock::now() + WAIT);
        let patience = Patience { until, ..Patience::of(Duration::ZERO) };
        if deliver(context, &session, &patience)? == Waited::NotToTheEnd {
            return Err(Error::new("the staging goes on").with_hint("it will be asked for again"));
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

/// Has the node remove the directory of an allocation, and waits for it.
///
/// # Errors
/// If something remains, or the node does not answer.
pub(crate) fn remove_directory(context: &mut Context, session: &Session) -> Result<(), Error> {
    if session.node.is_empty() {
        return Ok(()); // no node was asked to make it
    }
    let node = context.node_of(session)?;
    let attempt = new_attempt()?;
    let (mut pause, began) = (Pause::usual(), clock::now());
    let wait = WAIT.min(context.site.node_wait);
    loop {
        let operation = Operation::Remove { place: session.place(), attempt: attempt.clone() };
        let next = match context.ask(&node, operation) {
            Ok(Outcome::Done { bytes, note, .. }) => {
                note_removal(context, session, bytes, note.as_deref());
                return Ok(());
            }
            Ok(Outcome::Failed { reason, .. }) => return Err(Error::new(reason)),
            Ok(Outcome::Running { .. }) if began.elapsed() < WAIT => pause.next(),
            Ok(Outcome::Running { .. }) => {
                let message = format!("{node} still removes {}", session.directory());
                return Err(Error::new(message).with_hint("it will be asked for again"));
            }
            Ok(_) => return Err(Error::new(format!("{node} answered another question"))),
            Err(NoAnswer::Wrong(error)) => return Err(error),
            Err(NoAnswer::Unreachable(_) | NoAnswer::Lost(_)) if began.elapsed() < wait => {
                pause.next()
            }
            Err(NoAnswer::Unreachable(error) | NoAnswer::Lost(error)) => return Err(error),
        };
        clock::sleep(next);
    }
}

/// The capacity is accounted, not enforced by the file system: an allocation that was larger is named.
fn note_removal(context: &Context, session: &Session, bytes: u64, note: Option<&str>) {
    let (token, capacity) = (&session.token, session.capacity_bytes());
    if session.grains > 0 && bytes > capacity {
        let user = session.user;
        context.log.line(&format!(
            "warning: {token} of user {user} had {bytes} bytes in an allocation of {capacity}"
        ));
    }
    if let Some(note) = note {
        context.log.line(&format!("warning: {token}: {note}"));
    }
}
