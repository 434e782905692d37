//! What is still to be done for a job, as its record and its lists say. Changes nothing.

use forebay_host::files;

use forebay_engine::Place;

use crate::{Phase, RecordFile};

impl RecordFile {
    /// Was there a script that may have written something which is to be staged out yet?
    #[must_use]
    pub fn needs_stage_out(&self) -> bool {
        match self.record.phase {
            Phase::Preparing => false,
            Phase::Removing => self.record.stages_out(),
            Phase::Running | Phase::Kept => !self.has_nothing_to_stage_out(),
        }
    }

    /// Neither the script nor its programs have asked for something to be staged out that has not arrived.
    fn has_nothing_to_stage_out(&self) -> bool {
        // Yes, if nobody can tell.
        let is_asked = || self.open_requests().map_or(true, |open| !open.is_empty());
        !self.record.stages_out() && !is_asked()
    }

    /// May its programs have asked for something to be staged out, so that only its own machine can tell?
    #[must_use]
    pub fn may_have_requests(&self) -> bool {
        let record = &self.record;
        let has_begun = matches!(record.phase, Phase::Running | Phase::Kept);
        let is_out_of_sight = |place: &Place| place.mounted || files::status(&place.root).is_err();
        let is_unknown = record.place.as_ref().is_some_and(is_out_of_sight);
        has_begun && !record.keep && !record.stages_out() && is_unknown
    }

    /// Is it for the user alone to say that it can go? So it is if he wants it kept, or if a script may
    /// have written something that nothing stages out.
    #[must_use]
    pub fn needs_user_decision(&self) -> bool {
        let has_nothing_to_stage_out =
            || self.has_nothing_to_stage_out() && self.record.place.is_some();
        match self.record.phase {
            Phase::Preparing | Phase::Removing => false,
            Phase::Running | Phase::Kept => self.record.keep || has_nothing_to_stage_out(),
        }
    }
}
