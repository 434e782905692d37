//! A job that has its allocation: stage in, run, stage out.

use std::path::{Path, PathBuf};

use forebay_directive::StageKind;
use forebay_engine::JobAllocation;
use forebay_host::files;
use forebay_mover::{Journal, Number};
use forebay_store::Allocation;
use indicatif::HumanBytes;

use crate::context::{ActiveJob, FAILURES_MAX};
use crate::execution::{Execution, ExecutionResult, JOB_GRACE, Program};
use crate::open_work::OpenStageOut;
use crate::outcome::exit_code;
use crate::{Error, Outcome};
use forebay_deadline::{Guard, Measurements};
use forebay_directive::Direction;
use forebay_onclose::{Drain, Job as DrainedJob};
use forebay_profile::{Profile, recent_stage_outs};
use forebay_record::UnsavedFiles;
use forebay_record::{Phase, Record, RecordFile, STAGE_IN, none_is_open};
use forebay_request_server::Requested;
use forebay_request_server::Requests;
use forebay_staging::Staged;
use forebay_staging::{Roots, StageOut, Staging, is_inside_allocation, plan_in};

impl ActiveJob<'_> {
    pub(crate) fn run(
        &mut self,
        profile: Option<&Profile>,
        recorded: &mut RecordFile,
    ) -> Result<Outcome, Error> {
        let life = self.life;
        if let Some(allocated) = self.job_allocation {
            self.check_destinations(allocated)?;
        }
        let stops = self.events.stops();
        let drain = self
            .job_allocation
            .map(|allocated| Drain::new(self.drained_job(allocated), stops));
        let drain = drain.transpose()?.flatten();
        let stage_in = self.stage_in(|_| true)?;
        if self.events.stops().count() > 0 {
            return Err(Error::Stopped);
        }
        let guard = self.guard(stage_in.as_ref(), drain.as_ref());
        let recording = life.order.recording.as_ref();
        let requests = self.requests()?;
        let socket = requests.iter().map(Requests::variable);
        let environment = socket.collect();
        // There may be data in the allocation that exist nowhere else from the moment in which the script begins.
        let start_record = recorded.prepare(|record| {
            record.phase = Phase::Running;
            record.stage_out.clone_from(&life.request.stage_out);
            record.drain_to = drain.as_ref().map(Drain::elsewhere).unwrap_or_default();
        })?;
        let execution = Execution {
            start_record: Some(&start_record),
            program: Program::Script(life.order.script),
            submitted_in: &life.submitted_in,
            works_in: &life.works_in,
            environment: &environment,
            output: life.order.output,
            time_limit: life.order.time_limit,
            guard: guard.as_ref(),
            recording: profile.zip(recording),
        };
        let run = || self.execute_with_events(&execution);
        let executed = match &drain {
            Some(drain) => drain.run_with(recorded, run),
            None => run(),
        };
        let (executed, handled) = executed.map_err(|error| match error {
            Error::LostSight { error, .. } => Error::LostSight {
                error,
                kept: self.data_location(),
            },
            error => error,
        })?;
        let mut outcome = self.outcome(&execution, executed, stage_in);
        outcome.on_close = handled;
        let before = self.events.stops().count();
        let skip_remaining_copies = before > 0 || guard.as_ref().is_some_and(Guard::has_ended_job);
        outcome.requested =
            requests.and_then(|requests| self.end(&requests, before, skip_remaining_copies));
        Ok(if self.may_stage_out() {
            self.finish(outcome, before, recorded, drain.as_ref(), guard.as_ref())
        } else {
            outcome
        })
    }

    pub(crate) fn outcome(
        &self,
        execution: &Execution,
        executed: ExecutionResult,
        stage_in: Option<Staged>,
    ) -> Outcome {
        let life = self.life;
        let profile = execution.recording.map(|(profile, _)| profile.directory());
        Outcome {
            job_id: life.job_id.clone(),
            run_id: life.directory.id().to_owned(),
            script: execution.script(life).path.clone(),
            store: self.job_allocation.map(|allocated| allocated.used.clone()),
            persistent: self.persistents.account(),
            stage_in,
            job_status: executed.status,
            job_s: executed.seconds,
            on_close: None,
            drain: None,
            stage_out: None,
            requested: None,
            leftover_processes: executed.leftovers.found,
            unended_processes: executed.leftovers.remaining,
            undelivered: false,
            kept: None,
            not_safe: None,
            deadline: execution.guard.and_then(Guard::account),
            profile: profile.map(Path::to_owned),
            exit_code: executed.status,
        }
    }

    /// Stage-out. The allocation is kept unless everything asked for arrived.
    fn finish(
        &self,
        mut outcome: Outcome,
        before: usize,
        recorded: &mut RecordFile,
        drain: Option<&Drain>,
        guard: Option<&Guard>,
    ) -> Outcome {
        let life = self.life;
        let mut missing = !outcome.unended_processes.is_empty();
        let drained = drain.map(Drain::report_progress);
        let stage_out = self.stage_out(drain);
        if stage_out.is_asked_for() {
            let (staged, not_safe) =
                self.run_stage_out(&stage_out, recorded, (guard, drain), before, missing);
            missing |= !staged.failures.is_empty();
            outcome.stage_out = Some(staged);
            outcome.not_safe = not_safe.filter(|not_safe| not_safe.files > 0);
        }
        let staged = outcome.stage_out.as_ref();
        outcome.drain = drain
            .zip(drained)
            .map(|(drain, status)| drain.summary(status, staged));
        outcome.undelivered = missing;
        let time_ran_out = guard.is_some_and(|guard| {
            guard.has_ended_job() || guard.is_active() && self.is_asked_to_stop()
        });
        outcome.exit_code = exit_code(outcome.job_status, missing, time_ran_out);
        if let Some(allocated) = self.job_allocation {
            self.check_capacity(allocated);
        }
        if !missing {
            // Whatever becomes of the record, the job has ended well.
            let change = if life.order.keep {
                Record::clear_stage_out
            } else {
                Record::mark_removing
            };
            let written = self
                .allocation()
                .map_or(Ok(()), |own| none_is_open(own.root()))
                .and_then(|()| recorded.update(change));
            if let Err(error) = written {
                life.watcher.warning(&error.to_string());
            }
        }
        if missing || (life.order.keep && self.job_allocation.is_some()) {
            let kept = self.data_location();
            outcome.kept = kept.map(|root| recorded.record.path_from_outside(&root));
        }
        outcome
    }

    /// The stage-out, and what is not safe after it; `before`: how often we were asked to stop until now.
    fn run_stage_out(
        &self,
        stage_out: &StageOut,
        recorded: &RecordFile,
        (guard, drain): (Option<&Guard>, Option<&Drain>),
        before: usize,
        missing: bool,
    ) -> (Staged, Option<UnsavedFiles>) {
        let on_duty = guard.filter(|guard| guard.is_active());
        let stops = self.events.stops();
        // A scheduler that wants the job to end says so more than once, and means it with SIGKILL only.
        let is_repeated = || on_duty.is_some() && stops.is_by_sigterm();
        // What a scheduler kills next is listed, and so looked through.
        let go_on = |_| stops.count() <= before || on_duty.is_some();
        let journal = match stage_out.plan(recorded, &go_on) {
            Ok(journal) => journal,
            // Whoever stopped this does not wait until all is looked through for a list.
            Err(error @ forebay_mover::Error::PlanInterrupted(_)) => {
                if let Some(drain) = drain {
                    drain.finish(None);
                }
                return (Staged::not_started(error), None);
            }
            Err(error) => {
                let not_safe = self.list_unsaved_without_journal(stage_out, recorded, &error);
                if let Some(drain) = drain {
                    drain.finish(None);
                }
                return (Staged::not_started(error), not_safe);
            }
        };
        let drained = drain.map_or(0, |drain| drain.mark_arrived(&journal));
        // A journal that cannot be read will be said to be so by the stage-out.
        let open = || {
            let counts = journal.counts();
            let open = counts.map_or_else(|_| Number::default(), |counts| counts.open());
            (open.files, open.bytes)
        };
        // May we be killed at any moment from here on?
        let is_near = on_duty.is_some_and(|guard| self.is_asked_to_stop() || guard.is_near(open));
        if is_near {
            self.list_not_safe(recorded, &journal, None);
        }
        let ignored = if is_repeated() { usize::MAX } else { before };
        let mut staged = self.staging(Direction::Out).carry_out(&journal, ignored);
        staged.files += drained;
        staged.unchanged_files += drained;
        if let Some(drain) = drain {
            drain.finish(Some(&journal));
        }
        let listed = missing || is_near || !staged.failures.is_empty();
        let not_safe = listed.then(|| self.list_not_safe(recorded, &journal, None));
        (staged, not_safe.flatten())
    }

    fn is_asked_to_stop(&self) -> bool {
        self.events.stops().count() > 0
    }

    /// May there be something to be staged out?
    fn may_stage_out(&self) -> bool {
        self.job_allocation.is_some() || self.persistents.are_used()
    }

    /// Where data lie that must not be lost sight of.
    fn data_location(&self) -> Option<PathBuf> {
        let own = self.allocation().map(|own| own.root().to_owned());
        own.or_else(|| self.persistents.root())
    }

    fn allocation(&self) -> Option<&Allocation> {
        self.job_allocation.map(|allocated| &allocated.allocation)
    }

    fn roots(&self) -> Roots {
        Roots::of(self.allocation(), self.persistents.namespaces())
    }

    fn stage_out(&self, drain: Option<&Drain>) -> StageOut<'_> {
        StageOut {
            stages: &self.life.request.stage_out,
            elsewhere: drain.map(Drain::elsewhere).unwrap_or_default(),
            roots: self.roots(),
            allocation: self.allocation(),
        }
    }

    fn drained_job<'a>(&'a self, allocated: &'a JobAllocation) -> DrainedJob<'a> {
        let life = self.life;
        let order = life.order;
        DrainedJob {
            id: life.directory.id(),
            directory: life.directory.path(),
            request: &life.request,
            allocation: &allocated.allocation,
            roots: allocated.roots(&life.request),
            node_local: order.node_local_path(),
            specs: order.drain,
            spectral: &order.spectral,
            verify: order.staging.verify_without_journal(),
            messages: life.watcher,
        }
    }

    /// Looks after the end that a scheduler sets, if there may be something to be staged out by then.
    fn guard<'a>(
        &'a self,
        stage_in: Option<&Staged>,
        drain: Option<&'a Drain<'a>>,
    ) -> Option<Guard<'a>> {
        let life = self.life;
        let wishes = life
            .order
            .deadline
            .as_ref()
            .filter(|_| self.may_stage_out())?;
        let work = OpenStageOut {
            stage_out: self.stage_out(drain),
            drain,
        };
        let measurements = Measurements {
            stage_in: stage_in.map(|staged| (staged.copied_bytes, staged.seconds)),
            earlier: || recent_stage_outs().collect(),
            bytes_per_s_max: life.order.staging.bytes_per_s_max,
        };
        let guard = Guard::new(
            wishes,
            life.under_scheduler,
            Box::new(work),
            measurements,
            JOB_GRACE,
            life.watcher,
        )?;
        guard.begin();
        Some(guard)
    }

    /// Where there is no journal that could be carried out, all that is not safe is found without.
    fn list_unsaved_without_journal(
        &self,
        stage_out: &StageOut,
        recorded: &RecordFile,
        error: &forebay_mover::Error,
    ) -> Option<UnsavedFiles> {
        let planned =
            Journal::in_memory().and_then(|journal| stage_out.plan_in(journal, &|_| true));
        match planned {
            Ok(journal) => self.list_not_safe(recorded, &journal, Some(&error.to_string())),
            Err(error) => {
                self.life.watcher.warning(&error.to_string());
                None
            }
        }
    }

    /// `reason`: why nothing could be staged out. None if the journal cannot be read any more.
    fn list_not_safe(
        &self,
        recorded: &RecordFile,
        journal: &Journal,
        reason: Option<&str>,
    ) -> Option<UnsavedFiles> {
        let root = self.allocation().map(Allocation::root);
        let warn = |text: String| self.life.watcher.warning(&text);
        let (not_safe, listed) = recorded
            .list_not_safe(journal, root, reason)
            .map_err(|error| warn(error.to_string()))
            .ok()?;
        listed.unwrap_or_else(|error| warn(error.to_string()));
        Some(not_safe)
    }

    /// Listens to what the job's programs ask.
    fn requests(&self) -> Result<Option<Requests>, Error> {
        let asked = self.life.request.job.as_ref();
        match asked.zip(self.job_allocation) {
            Some((job, allocated)) => {
                let persistent = self.persistents.askable()?;
                let tag = self.life.directory.id();
                let how = self.life.order.staging;
                let (own, capacity_bytes) = (&allocated.allocation, allocated.used.capacity_bytes);
                Ok(Requests::listen(
                    own,
                    capacity_bytes,
                    &job.access,
                    persistent,
                    tag,
                    how,
                )?)
            }
            None => Ok(None),
        }
    }

    /// Brings to its end what the job's programs asked for, but for what is to be staged out now.
    fn end(
        &self,
        requests: &Requests,
        before: usize,
        skip_remaining_copies: bool,
    ) -> Option<Requested> {
        let (requested, trouble) =
            requests.end(&self.events.stops(), before, skip_remaining_copies);
        if let Some(error) = trouble {
            self.life.watcher.warning(&error.to_string());
        }
        Some(requested).filter(|requested| *requested != Requested::default())
    }

    /// Where the size is no limit of the file system's own, going beyond it is at least said.
    pub(crate) fn check_capacity(&self, allocated: &JobAllocation) {
        if allocated.used.enforced {
            return;
        }
        let used = files::tree_bytes(allocated.allocation.root());
        if used > allocated.used.capacity_bytes {
            let (used, capacity) = (HumanBytes(used), HumanBytes(allocated.used.capacity_bytes));
            self.life.watcher.warning(&format!(
                "the job left {used} in an allocation of {capacity}: where the size is enforced it \
                 would have seen ENOSPC"
            ));
        }
    }

    /// What is staged out must not end in what is removed next.
    fn check_destinations(&self, allocated: &JobAllocation) -> Result<(), Error> {
        let life = self.life;
        let stages = life.request.stage_out.iter();
        let mut named = stages.filter(|stage| stage.kind != StageKind::List);
        match named
            .find(|stage| is_inside_allocation(&allocated.allocation, Path::new(&stage.pfs_path)))
        {
            Some(stage) => Err(Error::StageOutInside {
                script: life.order.script.path.clone(),
                place: stage.place,
                command: stage.command(Direction::Out),
                destination: stage.pfs_path.clone(),
            }),
            None => Ok(()),
        }
    }

    /// Stages in what goes to the wanted places; none if nothing is to be staged in.
    pub(crate) fn stage_in(
        &self,
        is_wanted: impl Fn(&Path) -> bool + Sync,
    ) -> Result<Option<Staged>, Error> {
        let life = self.life;
        if life.request.stage_in.is_empty() || !self.may_stage_out() {
            return Ok(None);
        }
        let (stages, roots) = (&life.request.stage_in, self.roots());
        let script = &life.order.script.path;
        // A stage-in that is killed is never gone on with, so its journal need not outlive the job.
        let path = life.directory.path().join(STAGE_IN);
        let journal = Journal::open(&path)?;
        let stops = self.events.stops();
        let go_on = |_| stops.count() == 0;
        let stopped = |error| match error {
            forebay_staging::Error::Mover(forebay_mover::Error::PlanInterrupted(_))
                if !go_on(0) =>
            {
                Error::Stopped
            }
            error => error.into(),
        };
        let as_named = &Path::to_owned;
        plan_in(
            &journal, stages, &roots, script, as_named, &go_on, &is_wanted,
        )
        .map_err(stopped)?;
        if let Some(allocated) = self.job_allocation {
            let mut own = journal.counts()?;
            if self.persistents.are_used() {
                let root = allocated.allocation.root();
                let is_own = |target: &Path| target.starts_with(root) && is_wanted(target);
                let alone = Journal::in_memory()?;
                plan_in(&alone, stages, &roots, script, as_named, &go_on, &is_own)
                    .map_err(stopped)?;
                own = alone.counts()?;
            }
            allocated.used.must_hold(own.open().bytes)?;
        }
        let failures = journal.failures(FAILURES_MAX)?;
        if !failures.is_empty() {
            return Err(Error::StageIn(failures));
        }
        let staged = self.staging(Direction::In).carry_out(&journal, 0);
        drop(journal);
        Journal::remove(&path)?;
        if self.events.stops().count() > 0 {
            return Err(Error::Stopped);
        }
        if staged.failures.is_empty() {
            Ok(Some(staged))
        } else {
            Err(Error::StageIn(staged.failures))
        }
    }

    fn staging(&self, direction: Direction) -> Staging<'_> {
        Staging {
            direction,
            tag: self.life.directory.id(),
            stops: self.events.stops(),
            watcher: self.life.watcher,
            into_new_allocation: direction == Direction::In && !self.persistents.are_used(),
            how: self.life.order.staging,
        }
    }
}
