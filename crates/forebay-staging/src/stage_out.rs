//! Plans what is staged out of namespaces, and what is staged out of them for other reasons than a line of the script.

use std::path::{Path, PathBuf};

use forebay_directive::{Direction, Stage};
use forebay_host::files;
use forebay_mover::{Failure, Journal, Planned};
use forebay_record::{DrainTarget, RecordFile, STAGE_OUT, has_pending};
use forebay_store::Allocation;

use crate::extra_targets::plan_extra_targets;
use crate::lines::{expanded, transfer};
use crate::requests::plan_requests;
use crate::{Roots, is_inside_allocation};

/// What stages out of namespaces.
#[derive(Clone)]
pub struct StageOut<'a> {
    /// Lines of the script.
    pub stages: &'a [Stage],
    /// What goes to directories that no stage_out line names.
    pub elsewhere: Vec<DrainTarget>,
    /// Where the namespaces are.
    pub roots: Roots,
    /// The job's own, which is removed afterwards.
    pub allocation: Option<&'a Allocation>,
}

impl StageOut<'_> {
    /// May something be staged out, as far as is known now?
    pub fn is_asked_for(&self) -> bool {
        let is_requested = || self.allocation.is_some_and(|own| has_pending(own.root()));
        !self.stages.is_empty() || !self.elsewhere.is_empty() || is_requested()
    }

    /// Plans it in the job's journal or a new one. What has arrived and did not change since is not staged out
    /// again; what cannot be staged is among the journal's failures. Where the state directory takes no journal
    /// any more, it is in the allocation.
    ///
    /// # Errors
    /// If neither takes one, or the one that is there is damaged or locked; or `on_planned` stopped it.
    pub fn plan(
        &self,
        recorded: &RecordFile,
        on_planned: Planned,
    ) -> Result<Journal, forebay_mover::Error> {
        use forebay_mover::Error::{Host, Journal as Unusable};
        let next_to_record = recorded.journal();
        let planned =
            |path: &Path| Journal::open(path).and_then(|journal| self.plan_in(journal, on_planned));
        let inside = self.allocation.map(|own| own.root().join(STAGE_OUT));
        let Some(inside) = inside else {
            return planned(&next_to_record);
        };
        if files::status(&inside).is_err() {
            match planned(&next_to_record) {
                Err(Host(_) | Unusable { .. }) => Journal::remove(&next_to_record)?,
                planned => return planned,
            }
        }
        planned(&inside)
    }

    /// The same in this journal.
    ///
    /// # Errors
    /// If it cannot be written, or `on_planned` stopped it.
    pub fn plan_in(
        &self,
        journal: Journal,
        on_planned: Planned,
    ) -> Result<Journal, forebay_mover::Error> {
        journal.begin_plan()?;
        // What programs revoked is left out of their requests, not of a stage_out line with the same two ends.
        journal.clear_exclusions()?;
        journal.clear_cancel()?; // whoever cancelled the last try did not mean this one
        for asked in self.stages {
            let stages = match expanded(asked, Direction::Out, &Path::to_owned) {
                Ok(stages) => stages,
                Err(reason) => {
                    journal.refuse(&Failure::new(PathBuf::from(&asked.pfs_path), reason))?;
                    continue;
                }
            };
            for stage in stages {
                let target = PathBuf::from(&stage.pfs_path);
                let inside = self.allocation.is_some_and(|own| is_inside_allocation(own, &target));
                match self.roots.path(&stage) {
                    Ok(source) if !inside => {
                        journal.plan_or_record_failure(
                            &transfer(&stage, source, target),
                            on_planned,
                        )?;
                    }
                    Ok(_) => {
                        journal.reject_permanently(&Failure::new(target, INSIDE.to_owned()))?
                    }
                    Err(reason) => journal.refuse(&Failure::new(target, reason))?,
                }
            }
        }
        if let Some(allocation) = self.allocation {
            plan_extra_targets(&journal, &self.elsewhere, self.stages, allocation, on_planned)?;
            plan_requests(&journal, allocation.root(), &self.roots, on_planned)?;
        }
        if let Some(allocation) = self.allocation {
            journal.reject_destinations(INSIDE, on_planned, &|place| {
                is_inside_allocation(allocation, place)
            })?;
        }
        journal.end_plan()?;
        Ok(journal)
    }
}

const INSIDE: &str = "it lies in the allocation itself";
