//! `post_run`: the job has ended. No node has anything to undo, so dead nodes do no harm.

use crate::Phase;
use crate::call::Call;
use crate::context::Context;
use forebay_site::Error;

pub(super) fn post_run(context: &mut Context, call: &Call) -> Result<(), Error> {
    let session = context.session(call.token()?)?;
    // Slurm calls it again after a restart; what was staged out since stays so.
    context.database.advance(session.id, &[Phase::Running, Phase::Ended], Phase::Ended)?;
    Ok(())
}
