//! Derives from a job's record and lists what is still to be done. Changes nothing.

use forebay_host::files;

use forebay_engine::Place;

use crate::{Phase, RecordFile};

impl RecordFile {
    /// Was there a script that may have written something which is to be staged out yet?
    pub fn needs_stage_out(&self) -> bool {
        match self.record.phase {
            Phase::Preparing => false,
            Phase::Removing => self.record.stages_out(),
            Phase::Running | Phase::Kept => !self.has_nothing_to_stage_out(),
        }
    }

    /// Neither the script nor its programs have asked for something to be staged out that has not arrived.
    fn has_nothing_to_stage_out(&self) -> bool {
        // True if that is unknown.
        let is_asked = || self.open_requests().map_or(true, |open| !open.is_empty());
        !self.record.stages_out() && !is_asked()
    }

    /// May its programs have asked for something to be staged out, so that only its own machine knows?
    pub fn may_have_requests(&self) -> bool {
        let record = &self.record;
        let has_begun = matches!(record.phase, Phase::Running | Phase::Kept);
        let is_out_of_sight = |place: &Place| place.mounted || files::status(&place.root).is_err();
        let is_unknown = record.place.as_ref().is_some_and(is_out_of_sight);
        has_begun && !record.keep && !record.stages_out() && is_unknown
    }

    /// May only the user decide to remove it? True with `--keep`, and if a script may have written what nothing stages
    /// out.
    pub fn needs_user_decision(&self) -> bool {
        let has_nothing_to_stage_out =
            || self.has_nothing_to_stage_out() && self.record.place.is_some();
        match self.record.phase {
            Phase::Preparing | Phase::Removing => false,
            Phase::Running | Phase::Kept => self.record.keep || has_nothing_to_stage_out(),
        }
    }
}
