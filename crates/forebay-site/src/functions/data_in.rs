//! `data_in`: copies the input of a job into its allocation.

use std::time::Duration;

use forebay_directive::Direction;

use crate::call::Call;
use crate::context::Context;
use crate::nodes::Patience;
use crate::staging::Waited;
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
    if session.is_on_nodes() {
        // Which nodes the job gets is not known yet: they copy its input when it starts.
        context.database.advance(session.id, &[Phase::StagingIn], Phase::StagedIn)?;
        return Ok(Waited::ToTheEnd);
    }
    let patience = Patience::of_call(call, &context.site, Duration::ZERO);
    context.stage(&session, Direction::In, &patience)
}
