//! `data_in`: copies the input of a job into its allocation.

use std::time::Duration;

use forebay_directive::Direction;

use crate::call::Call;
use crate::context::Context;
use crate::staging::{Patience, Waited};
use crate::{Error, Phase};

pub(super) fn data_in(context: &mut Context, call: &Call) -> Result<Waited, Error> {
    let session = context.session(call.token()?)?;
    if session.phase == Phase::StagedIn {
        return Ok(Waited::ToTheEnd);
    }
    let from = [Phase::Ready, Phase::StagingIn];
    if !context.database.advance(session.id, &from, Phase::StagingIn)? {
        // A former call, late: the job has gone on, and its data must stay.
        let (token, phase) = (&session.token, session.phase);
        return Err(Error::new(format!(
            "the allocation of {token} is {phase}: it is too late for input"
        )));
    }
    context.stage(&session, Direction::In, &Patience::of_call(call, Duration::ZERO))
}
