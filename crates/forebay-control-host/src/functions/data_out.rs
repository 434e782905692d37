//! `data_out`: copies the results of a job to their destinations.
//! Never removes the allocation: `teardown` does that.

use forebay_directive::Direction;

use crate::call::Call;
use crate::context::Context;
use crate::nodes::{TimeLimits, names_of};
use crate::staging::StagingResult;
use crate::{Phase, Session};
use forebay_site::Error;

pub(super) fn data_out(context: &mut Context, call: &Call) -> Result<StagingResult, Error> {
    let session = context.session(call.token()?)?;
    if session.phase == Phase::StagedOut {
        return Ok(StagingResult::Completed);
    }
    let limits = TimeLimits::of_call(call, &context.site, context.site.stage_out_retry);
    deliver(context, &session, &limits)
}

/// Stages out. The allocation is kept, unless another call removes it.
///
/// # Errors
/// If a result is not at its destination.
pub(crate) fn deliver(
    context: &mut Context,
    session: &Session,
    limits: &TimeLimits,
) -> Result<StagingResult, Error> {
    let token = &session.token;
    let from = [Phase::Ready, Phase::StagedIn, Phase::Running, Phase::Ended, Phase::StagingOut];
    if !context.database.advance(session.id, &from, Phase::StagingOut)? {
        return Err(Error::new(format!(
            "the allocation of {token} is {}: nothing can be staged out",
            session.phase
        )));
    }
    let staged = context.stage(session, Direction::Out, limits);
    let error = match staged {
        Ok(waited) => return Ok(waited),
        Err(error) => error,
    };
    if !context.is_kept(session)? {
        return Err(error);
    }
    let mut kept = format!(
        "kept in {}{}: copy it from there, or ask the site for forebay control deliver {token}",
        session.namespace(),
        undelivered(context, session)?
    );
    if !session.is_set_aside() {
        kept.push_str(&format!("; scancel --hurry {token} throws it away"));
    }
    Err(Error::new(error.to_string()).with_hint(kept))
}

/// The nodes whose results are not at their destinations.
fn undelivered(context: &Context, session: &Session) -> Result<String, Error> {
    if !session.is_on_nodes() {
        return Ok(String::new());
    }
    if session.has_engine() {
        return Ok(format!(" on {}", context.node_named(&session.node)?.name));
    }
    let shares = context.database.shares(Some(session.id))?.into_iter();
    let nodes = shares.filter(|share| !share.is_delivered);
    let nodes =
        nodes.map(|share| context.node_named(&share.node)).collect::<Result<Vec<_>, _>>()?;
    Ok(format!(" on {}", names_of(nodes.iter())))
}
