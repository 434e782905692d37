//! One node's part of a job's staging: stage-in, stage-out and unsaved files. [`Node`] has no
//! closures as arguments and no handles in its results, so a process on another node can serve it.
//! Never decides when a job ends.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay_directive::{Direction, Request};
use forebay_engine::JobAllocation;
use forebay_host::files;
use forebay_host::process::StopRequests;
use forebay_mover::{Error as MoverError, Findings, Journal, Number, RemoteCopiers};
use forebay_onclose::Drain;
use forebay_record::{RecordFile, STAGE_IN, StagingOptions, UnsavedFiles, WriteFailures};
use forebay_staging::{Roots, StageOut, Staging, StagingSummary, plan_in};
use forebay_store::Allocation;

use crate::Error;
use crate::context::FAILURES_MAX;
use crate::job_spec::Reporter;
use crate::store_watch::StoreWatch;

/// How long the end of a job looks at its files only to warn of something.
pub(crate) const LOOK_TIME_MAX: Duration = Duration::from_secs(2);

/// Which files are staged in.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Scope<'a> {
    Everything,
    /// Only files with these targets.
    Targets(&'a BTreeSet<PathBuf>),
}

impl Scope<'_> {
    fn has(self, target: &Path) -> bool {
        match self {
            Self::Everything => true,
            Self::Targets(targets) => targets.contains(target),
        }
    }
}

/// A staging stops if more stop requests than this arrive.
pub(crate) type IgnoredStops = usize;

/// The operations of a node for a job.
pub(crate) trait Node {
    /// Stages in; none if the script has no stage-in.
    ///
    /// # Errors
    /// If a file cannot be staged in, or a signal arrived.
    fn stage_in(&self, scope: Scope) -> Result<Option<StagingSummary>, Error>;

    /// Plans the stage-out.
    ///
    /// # Errors
    /// If no journal can be written, or planning was interrupted.
    fn plan_stage_out(&self, record: &RecordFile, ignored: IgnoredStops) -> Result<(), MoverError>;

    /// The pending files and bytes of the plan.
    fn outstanding(&self) -> Number;

    /// Carries out the plan.
    fn stage_out(&self, ignored: IgnoredStops) -> StagingSummary;

    /// Lists the files that exist only here, from the plan. Without a plan, `reason` says why there
    /// is none. None if they cannot be listed.
    fn list_unsaved(&self, record: &RecordFile, reason: Option<&str>) -> Option<UnsavedFiles>;

    /// Used bytes, whether they are all, and capacity, if the capacity is exceeded and the file system does not
    /// enforce it. Looks for [`LOOK_TIME_MAX`].
    fn over_capacity(&self) -> Option<(u64, bool, u64)>;

    /// The directory with data of the job; none if there is none.
    fn data_location(&self) -> Option<PathBuf>;
}

/// The node of `forebay run`.
pub(crate) struct LocalNode<'a> {
    pub(crate) job_id: &'a str,
    pub(crate) script: &'a Path,
    /// The job's own directory.
    pub(crate) directory: &'a Path,
    pub(crate) request: &'a Request,
    pub(crate) job_allocation: Option<&'a JobAllocation>,
    /// Names and roots of the persistent namespaces that the job uses.
    pub(crate) persistent: Vec<(String, PathBuf)>,
    pub(crate) persistent_root: Option<PathBuf>,
    /// The directory of the list of programs' requests.
    pub(crate) requests_root: &'a Path,
    pub(crate) options: StagingOptions,
    pub(crate) drain: Option<&'a Drain<'a>>,
    pub(crate) stops: StopRequests,
    pub(crate) reporter: &'a dyn Reporter,
    pub(crate) write_failures: &'a WriteFailures,
    pub(crate) store_watch: &'a StoreWatch,
    /// Other nodes of the job, which help to copy.
    pub(crate) remotes: RemoteCopiers,
    pub(crate) planned: RefCell<Option<PlannedStageOut>>,
}

/// The planned stage-out of a node.
pub(crate) struct PlannedStageOut {
    journal: Journal,
    /// Taken by the run.
    findings: Cell<Findings>,
    /// Drained files that the stage-out passes over.
    drained: Number,
}

impl<'a> LocalNode<'a> {
    fn allocation(&self) -> Option<&'a Allocation> {
        self.job_allocation.map(|allocated| &allocated.allocation)
    }

    fn roots(&self) -> Roots {
        Roots::of(self.allocation(), self.persistent.clone())
    }

    pub(crate) fn stage_out_lines(&self) -> StageOut<'a> {
        StageOut {
            stages: &self.request.stage_out,
            elsewhere: self.drain.map(Drain::extra_targets).unwrap_or_default(),
            roots: self.roots(),
            allocation: self.allocation(),
            requests_root: Some(self.requests_root.to_owned()),
            failed_writes: self
                .write_failures
                .incomplete(self.store_watch.doubtful_since_unix_ms()),
        }
    }

    fn staging(&self, direction: Direction) -> Staging<'_> {
        Staging {
            direction,
            tag: self.job_id,
            stops: self.stops.clone(),
            reporter: self.reporter,
            into_new_allocation: direction == Direction::In && self.persistent.is_empty(),
            how: self.options,
            keep_changed: None,
            remotes: self.remotes.clone(),
        }
    }

    /// Plans the stage-in of wanted targets in a journal.
    fn plan_stage_in(
        &self,
        journal: &Journal,
        is_wanted: &(dyn Fn(&Path) -> bool + Sync),
    ) -> Result<Findings, Error> {
        let (stages, roots) = (&self.request.stage_in, self.roots());
        let should_continue = |_| self.stops.count() == 0;
        let as_named = &Path::to_owned;
        plan_in(journal, stages, &roots, self.script, as_named, &should_continue, is_wanted)
            .map_err(|error| match error {
                forebay_staging::Error::Mover(MoverError::PlanInterrupted(_))
                    if !should_continue(0) =>
                {
                    Error::Stopped
                }
                error => error.into(),
            })
    }

    /// Reports a stage-in that exceeds the capacity before anything is copied.
    fn check_capacity_holds(&self, planned: &Journal, scope: Scope) -> Result<(), Error> {
        let Some(allocated) = self.job_allocation else {
            return Ok(());
        };
        let mut own = planned.counts()?;
        if !self.persistent.is_empty() {
            let root = allocated.allocation.root();
            let alone = Journal::in_memory()?;
            self.plan_stage_in(&alone, &|target| target.starts_with(root) && scope.has(target))?;
            own = alone.counts()?;
        }
        Ok(allocated.used.must_hold(own.open().bytes)?)
    }
}

impl Node for LocalNode<'_> {
    fn stage_in(&self, scope: Scope) -> Result<Option<StagingSummary>, Error> {
        if self.request.stage_in.is_empty() || self.data_location().is_none() {
            return Ok(None);
        }
        // A killed stage-in is not continued, so its journal may be removed with the job.
        let path = self.directory.join(STAGE_IN);
        let journal = Journal::open(&path)?;
        let findings = self.plan_stage_in(&journal, &|target| scope.has(target))?;
        self.check_capacity_holds(&journal, scope)?;
        let failures = journal.failures(FAILURES_MAX)?;
        if !failures.is_empty() {
            return Err(Error::StageIn(failures));
        }
        let staged = self.staging(Direction::In).carry_out(&journal, findings, 0);
        drop(journal);
        Journal::remove(&path)?;
        if self.stops.count() > 0 {
            return Err(Error::Stopped);
        }
        if staged.failures.is_empty() {
            Ok(Some(staged))
        } else {
            Err(Error::StageIn(staged.failures))
        }
    }

    fn plan_stage_out(&self, record: &RecordFile, ignored: IgnoredStops) -> Result<(), MoverError> {
        let should_continue = |_| self.stops.count() <= ignored;
        match self.stage_out_lines().plan(record, &should_continue) {
            Ok((journal, findings)) => {
                let stops = &self.stops;
                let should_continue = || stops.count() <= ignored;
                let mark = |drain: &Drain| drain.mark_arrived(&journal, Some(&should_continue));
                let drained = self.drain.map(mark).unwrap_or_default();
                let findings = Cell::new(findings);
                self.planned.replace(Some(PlannedStageOut { journal, findings, drained }));
                Ok(())
            }
            Err(error) => {
                if let Some(drain) = self.drain {
                    drain.finish(None);
                }
                Err(error)
            }
        }
    }

    fn outstanding(&self) -> Number {
        // The stage-out reports a journal that cannot be read.
        let counts = self.planned.borrow().as_ref().map(|planned| planned.journal.counts());
        counts.and_then(Result::ok).map(|counts| counts.open()).unwrap_or_default()
    }

    fn stage_out(&self, ignored: IgnoredStops) -> StagingSummary {
        let planned = self.planned.borrow();
        let Some(PlannedStageOut { journal, findings, drained }) = planned.as_ref() else {
            return StagingSummary::default();
        };
        let mut staged = self.staging(Direction::Out).carry_out(journal, findings.take(), ignored);
        staged.files += drained.files;
        staged.bytes += drained.bytes;
        staged.unchanged_files += drained.files;
        if let Some(drain) = self.drain {
            drain.finish(Some(journal));
        }
        staged
    }

    fn list_unsaved(&self, record: &RecordFile, reason: Option<&str>) -> Option<UnsavedFiles> {
        let warn = |error: &dyn std::fmt::Display| self.reporter.warning(&error.to_string());
        let root = self.allocation().map(Allocation::root);
        let list = |journal: &Journal| {
            let listed = record.list_unsaved(journal, root, reason);
            let (unsaved, written) = listed.map_err(|error| warn(&error)).ok()?;
            written.unwrap_or_else(|error| warn(&error));
            Some(unsaved)
        };
        match self.planned.borrow().as_ref() {
            Some(planned) => list(&planned.journal),
            None => {
                let lines = self.stage_out_lines();
                let planned = Journal::in_memory().and_then(|journal| {
                    lines.plan_in(&journal, &|_| true)?;
                    Ok(journal)
                });
                list(&planned.map_err(|error| warn(&error)).ok()?)
            }
        }
    }

    fn over_capacity(&self) -> Option<(u64, bool, u64)> {
        let allocated = self.job_allocation.filter(|allocated| !allocated.used.enforced)?;
        // Engines on nodes may show their directory by a link.
        let root = files::real_path(allocated.allocation.root()).ok()?;
        let (used, is_all) = files::tree_bytes_within(&root, LOOK_TIME_MAX);
        let given = allocated.used.capacity_bytes;
        (used > given).then_some((used, is_all, given))
    }

    fn data_location(&self) -> Option<PathBuf> {
        let own = self.allocation().map(|own| own.root().to_owned());
        own.or_else(|| self.persistent_root.clone())
    }
}
