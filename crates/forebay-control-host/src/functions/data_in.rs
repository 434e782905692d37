//! `data_in`: copies the input of a job into its allocation.
//! Also waits for `user_max`, and then makes the directory of a job that waited.
//! Never copies in a pool whose space is in the nodes: `pre_run` does that.

use std::time::Duration;

use forebay_directive::Direction;
use forebay_host::clock;

use super::setup::make;
use crate::call::Call;
use crate::context::Context;
use crate::nodes::{Pause, TimeLimits};
use crate::staging::{StagingResult, removed_meanwhile};
use crate::token_lock::TokenLock;
use crate::{Phase, Session};
use forebay_site::{Error, Site};

pub(super) fn data_in(context: &mut Context, call: &Call) -> Result<StagingResult, Error> {
    let mut session = context.session(call.token()?)?;
    if matches!(session.phase, Phase::Waiting | Phase::Creating) {
        if !wait_for_room(context, call, &session)? {
            return Ok(StagingResult::Incomplete(Vec::new()));
        }
        session = context.session(call.token()?)?;
    }
    if session.phase == Phase::StagedIn {
        return Ok(StagingResult::Completed);
    }
    let from = [Phase::Ready, Phase::StagingIn];
    if !context.database.advance(session.id, &from, Phase::StagingIn)? {
        // A former call, late: the job has gone on, and its data must stay.
        let (token, phase) = (&session.token, session.phase);
        return Err(Error::new(format!(
            "the allocation of {token} is {phase}: it is too late for input"
        )));
    }
    if session.is_on_nodes() {
        // Which nodes the job gets is not known yet: they copy its input when it starts.
        context.database.advance(session.id, &[Phase::StagingIn], Phase::StagedIn)?;
        return Ok(StagingResult::Completed);
    }
    let limits = TimeLimits::of_call(call, &context.site, Duration::ZERO);
    context.stage(&session, Direction::In, &limits)
}

/// Waits until the user's other allocations leave room for this one, and makes it. Returns false if the call ends before
/// that, and comes again.
fn wait_for_room(context: &mut Context, call: &Call, waiting: &Session) -> Result<bool, Error> {
    let until = TimeLimits::of_call(call, &context.site, Duration::ZERO).until;
    let mut pause = Pause::shortest();
    let mut refused = String::new();
    let mut said = false;
    loop {
        // The site may have changed user_max. A file with errors changes nothing, and is named once.
        match Site::load() {
            Ok(site) => context.site = site,
            Err(error) if error.message != refused => {
                context.log.line(&format!("{}: {}", waiting.token, error.message));
                refused = error.message;
            }
            Err(_) => {}
        }
        let pool = context.site.pool(&waiting.pool)?.clone();
        let lock = TokenLock::take(&context.site, &waiting.token)?;
        match context.database.take_room(waiting.id, &pool)? {
            None => return Err(removed_meanwhile(&waiting.token)),
            Some(session) if session.phase == Phase::Creating => {
                make(context, session, &pool)?;
                return Ok(true);
            }
            Some(session) if session.phase != Phase::Waiting => return Ok(true),
            Some(_) if until.is_some_and(|until| clock::now() > until) => return Ok(false),
            Some(_) if !said => {
                let name = &pool.name;
                context
                    .log
                    .line(&format!("{}: waits for user_max of the pool {name}", waiting.token));
                said = true;
            }
            Some(_) => {}
        }
        drop(lock);
        clock::sleep(pause.next());
    }
}
