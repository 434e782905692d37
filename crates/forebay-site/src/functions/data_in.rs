//! `data_in`: copies the input of a job into its allocation.

use std::time::Duration;

use forebay_directive::Direction;

use crate::call::Call;
use crate::context::Context;
use crate::staging::Patience;
use crate::{Error, Phase};

pub(super) fn data_in(context: &mut Context, call: &Call) -> Result<(), Error> {
    let session = context.session(call.token()?)?;
    if session.phase == Phase::StagedIn {
        return Ok(());
    }
    let from = [Phase::Ready, Phase::StagingIn];
    if !context.database.advance(session.id, &from, Phase::StagingIn)? {
        // A former call, late: the job has gone on, and its data must stay.
        let (token, phase) = (&session.token, session.phase);
        return Err(Error::new(format!(
            "the allocation of {token} is {phase}: it is too late for input"
        )));
    }
    if !session.plan.stage_in.is_empty() {
        let patience = Patience { retry: Duration::ZERO, until: None };
        match context.stage(&session, Direction::In, &patience) {
            Ok(staged) => {
                let (files, bytes) = (staged.files, staged.bytes);
                context
                    .log
                    .line(&format!("{}: staged in {files} files, {bytes} bytes", session.token));
            }
            Err(error) => {
                context.database.set_problem(session.id, Some(&error.to_string()))?;
                return Err(error);
            }
        }
    }
    context.database.set_problem(session.id, None)?;
    if !context.database.advance(
        session.id,
        &[Phase::StagingIn, Phase::StagedIn],
        Phase::StagedIn,
    )? {
        return Err(Error::new(format!(
            "the allocation of {} was removed meanwhile",
            session.token
        )));
    }
    Ok(())
}
