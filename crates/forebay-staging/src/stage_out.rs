//! Plans the stage-out of a job: lines of the script, drains and requests of programs.
//! Assumes that destinations have the paths that the job saw. Never plans a copy into the job's own allocation.

use std::path::{Path, PathBuf};

use forebay_directive::{Direction, Stage};
use forebay_host::files;
use forebay_mover::{FailedWrites, Failure, Findings, Journal, Plan, PlanProgress};
use forebay_record::{DrainTarget, RecordFile, STAGE_OUT, has_pending};
use forebay_store::Allocation;

use crate::extra_targets::plan_extra_targets;
use crate::lines::{expanded, transfer};
use crate::requests::plan_requests;
use crate::{Roots, is_inside_allocation};

/// The sources of a stage-out.
#[derive(Clone)]
pub struct StageOut<'a> {
    /// The stage_out lines of the script.
    pub stages: &'a [Stage],
    /// Drains to directories that no stage_out line names.
    pub elsewhere: Vec<DrainTarget>,
    /// The roots of the namespaces.
    pub roots: Roots,
    /// The job's own allocation, which is removed afterwards.
    pub allocation: Option<&'a Allocation>,
    /// The directory of the list of programs' requests.
    pub requests_root: Option<PathBuf>,
    /// Files of the job with a failed write.
    pub failed_writes: FailedWrites,
}

impl StageOut<'_> {
    /// True if something is to be staged out, as far as is known now.
    pub fn is_asked_for(&self) -> bool {
        let is_requested = || self.requests_root.as_deref().is_some_and(has_pending);
        !self.stages.is_empty() || !self.elsewhere.is_empty() || is_requested()
    }

    /// Plans the stage-out in the job's journal or a new one. Skips unchanged files that are
    /// completed; the journal lists failures. If the state directory accepts no journal, it is in
    /// the allocation.
    ///
    /// # Errors
    /// If no journal can be created, one is damaged or locked, or `on_planned` interrupted the planning.
    pub fn plan(
        &self,
        recorded: &RecordFile,
        on_planned: PlanProgress,
    ) -> Result<(Journal, Findings), forebay_mover::Error> {
        use forebay_mover::Error::{Host, Journal as Unusable};
        let next_to_record = recorded.journal();
        let planned = |path: &Path| {
            let journal = Journal::open(path)?;
            let findings = self.plan_in(&journal, on_planned)?;
            Ok((journal, findings))
        };
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

    /// Plans the stage-out in this journal.
    ///
    /// # Errors
    /// If it cannot be written, or `on_planned` interrupted the planning.
    pub fn plan_in(
        &self,
        journal: &Journal,
        on_planned: PlanProgress,
    ) -> Result<Findings, forebay_mover::Error> {
        let plan = Plan::begin(journal, on_planned)?.with_failed_writes(self.failed_writes.clone());
        // Exclusions apply to requests of programs, not to a stage_out line with the same source and target.
        journal.clear_exclusions()?;
        journal.clear_cancel()?; // a cancellation applies to one attempt only
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
                        plan.add_or_record_failure(&transfer(&stage, source, target))?;
                    }
                    Ok(_) => {
                        journal.reject_permanently(&Failure::new(target, INSIDE.to_owned()))?
                    }
                    Err(reason) => journal.refuse(&Failure::new(target, reason))?,
                }
            }
        }
        if let Some(allocation) = self.allocation {
            plan_extra_targets(&plan, &self.elsewhere, self.stages, allocation)?;
        }
        if let Some(root) = &self.requests_root {
            plan_requests(&plan, root, &self.roots)?;
        }
        if let Some(allocation) = self.allocation {
            plan.reject_destinations(INSIDE, &|place| is_inside_allocation(allocation, place))?;
        }
        plan.end()
    }
}

const INSIDE: &str = "it is in the allocation itself";
