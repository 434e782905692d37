//! Derives from a job's record and lists what is pending. Changes nothing.

use forebay_host::files;

use forebay_engine::AllocationDirectory;

use crate::{Phase, RecordFile};

impl RecordFile {
    /// True if the script has started and some of its data are still to be staged out.
    pub fn needs_stage_out(&self) -> bool {
        match self.record.phase {
            Phase::Preparing => false,
            Phase::Removing => self.record.stages_out(),
            Phase::Running | Phase::Kept => !self.has_nothing_to_stage_out(),
        }
    }

    /// True if neither the script's lines nor its programs' requests are pending.
    fn has_nothing_to_stage_out(&self) -> bool {
        // An unreadable list counts as pending requests.
        let is_asked = || self.open_requests().map_or(true, |open| !open.is_empty());
        !self.record.stages_out() && !is_asked()
    }

    /// True if only the job's own machine can read whether its programs requested a stage-out.
    pub fn may_have_requests(&self) -> bool {
        let record = &self.record;
        let has_begun = matches!(record.phase, Phase::Running | Phase::Kept);
        let is_out_of_sight =
            |place: &AllocationDirectory| place.mounted || files::status(&place.root).is_err();
        let is_unknown = record.place.as_ref().is_some_and(is_out_of_sight);
        has_begun && !record.keep && !record.stages_out() && is_unknown
    }

    /// True if only the user may remove the allocation: with `--keep`, or if the script has started
    /// and nothing is to be staged out.
    pub fn needs_user_decision(&self) -> bool {
        let has_nothing_to_stage_out =
            || self.has_nothing_to_stage_out() && self.record.place.is_some();
        match self.record.phase {
            Phase::Preparing | Phase::Removing => false,
            Phase::Running | Phase::Kept => self.record.keep || has_nothing_to_stage_out(),
        }
    }
}
