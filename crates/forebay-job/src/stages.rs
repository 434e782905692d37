//! A job in its allocation: stage in, run, stage out.
//! Assumes that the process is in the view. Never removes an allocation whose stage-out is incomplete.

use std::cell::RefCell;
use std::path::Path;

use forebay_cluster::Session;
use forebay_directive::StageKind;
use forebay_engine::{JobAllocation, Ledger, Step};
use forebay_host::namespace::Keeper;
use forebay_host::process::Identity;
use forebay_host::{clock, files};
use forebay_mover::{Error as MoverError, Number};
use indicatif::HumanBytes;

use crate::context::ActiveJob;
use crate::execution::{Execution, ExecutionResult, JOB_GRACE, Program};
use crate::node::{LOOK_TIME_MAX, LocalNode, Node, Scope};
use crate::open_work::OpenStageOut;
use crate::outcome::exit_code;
use crate::remote_copies::remote_copiers;
use crate::{Error, Outcome, Reporter, UnnamedFiles};
use forebay_deadline::{Guard, Measurements};
use forebay_directive::Direction;
use forebay_onclose::{Drain, Job as DrainedJob};
use forebay_profile::{Profile, recent_stage_outs};
use forebay_record::UnsavedFiles;
use forebay_record::{Phase, Record, RecordFile, clear_pending};
use forebay_request_server::{RequestPlace, Requested, Requests};
use forebay_staging::StagingSummary;
use forebay_staging::is_inside_allocation;

impl ActiveJob<'_> {
    pub(crate) fn run(
        &mut self,
        profile: Option<&Profile>,
        recorded: &mut RecordFile,
    ) -> Result<Outcome, Error> {
        let context = self.context;
        if let Some(allocated) = self.job_allocation {
            self.check_destinations(allocated)?;
        }
        let stops = self.events.stops();
        let drain =
            self.job_allocation.map(|allocated| Drain::new(self.drained_job(allocated), stops));
        let drain = drain.transpose()?.flatten();
        let node = self.node(drain.as_ref());
        let stage_in = self.watching_nodes(|| node.stage_in(Scope::Everything))?;
        if self.events.stops().count() > 0 {
            return Err(Error::Stopped);
        }
        let guard = self.guard(&node, stage_in.as_ref());
        let recording = context.spec.recording.as_ref();
        let requests = self.requests()?;
        let socket = requests.iter().map(Requests::variable);
        let environment = socket.collect();
        // When the script starts, the allocation may hold data that exist nowhere else.
        let start_record = recorded.prepare(|record| {
            record.phase = Phase::Running;
            record.stage_out.clone_from(&context.request.stage_out);
            record.drain_to = drain.as_ref().map(Drain::extra_targets).unwrap_or_default();
        })?;
        let execution = Execution {
            start_record: Some(&start_record),
            program: Program::Script(context.spec.script),
            submit_directory: &context.submit_directory,
            working_directory: &context.working_directory,
            environment: &environment,
            output: context.spec.output,
            time_limit: context.spec.time_limit,
            guard: guard.as_ref(),
            recording: profile.zip(recording),
        };
        let began_unix_ms = clock::unix_milliseconds();
        let run = || self.execute_with_events(&execution);
        let executed = match &drain {
            Some(drain) => drain.run_with(recorded, run),
            None => run(),
        };
        let (executed, handled) = executed.map_err(|error| match error {
            Error::ProcessesUnknown { error, .. } => {
                Error::ProcessesUnknown { error, kept: node.data_location() }
            }
            error => error,
        })?;
        let mut outcome = self.outcome(&execution, executed, stage_in);
        outcome.on_close = handled;
        outcome.failed_writes = self.write_failures.recorded();
        outcome.store_full_unix_ms = self.store_watch.full_unix_ms();
        outcome.sync_s = self.sync_file_system();
        self.remount();
        let before = self.events.stops().count();
        let skip_remaining_copies = before > 0 || guard.as_ref().is_some_and(Guard::has_ended_job);
        outcome.requested =
            requests.and_then(|requests| self.end(&requests, before, skip_remaining_copies));
        if node.data_location().is_some() {
            let guard = guard.as_ref();
            outcome = self.watching_nodes(|| self.finish(outcome, before, recorded, &node, guard));
            outcome.nodes = self.session.map(Session::summary);
            outcome.unnamed = self.unnamed_files(&node, began_unix_ms, &outcome);
        }
        Ok(outcome)
    }

    /// The processes of the job have ended. Their data are read through mounts that answer.
    fn remount(&self) {
        let messages = self.session.map(Session::remount).unwrap_or_default();
        messages.iter().for_each(|text| self.context.reporter.warning(text));
    }

    /// Ends the job's processes after a panic of this one. The data stay where they are, for `forebay clean`.
    pub(crate) fn after_panic(&self) -> Error {
        if let Err(error) = self.kill_orphans() {
            self.context.reporter.warning(&error.to_string());
        }
        Error::Panicked { kept: self.node(None).data_location() }
    }

    pub(crate) fn outcome(
        &self,
        execution: &Execution,
        executed: ExecutionResult,
        stage_in: Option<StagingSummary>,
    ) -> Outcome {
        let context = self.context;
        let profile = execution.recording.map(|(profile, _)| profile.directory());
        Outcome {
            job_id: context.job_id.clone(),
            run_id: context.directory.id().to_owned(),
            script: execution.script(context).path.clone(),
            store: self.job_allocation.map(|allocated| allocated.used.clone()),
            nodes: self.session.map(Session::summary),
            persistent: self.persistents.account(),
            stage_in,
            job_status: executed.status,
            job_s: executed.seconds,
            sync_s: None,
            on_close: None,
            drain: None,
            stage_out: None,
            requested: None,
            leftover_processes: executed.leftovers.found,
            unended_processes: executed.leftovers.remaining,
            undelivered: false,
            unnamed: None,
            kept: None,
            not_safe: None,
            deadline: execution.guard.and_then(Guard::account),
            profile: profile.map(Path::to_owned),
            failed_writes: Vec::new(),
            store_full_unix_ms: None,
            exit_code: executed.status,
        }
    }

    /// Stages out. The allocation is kept unless everything is completed.
    fn finish(
        &self,
        mut outcome: Outcome,
        before: usize,
        recorded: &mut RecordFile,
        node: &LocalNode,
        guard: Option<&Guard>,
    ) -> Outcome {
        let context = self.context;
        renew_keeper(recorded, context.reporter);
        let mut missing = !outcome.unended_processes.is_empty();
        let drain = node.drain;
        let drained = drain.map(Drain::report_progress);
        if node.stage_out_lines().is_asked_for() {
            let (staged, not_safe) = self.run_stage_out(node, recorded, guard, before, missing);
            missing |= !staged.failures.is_empty();
            outcome.stage_out = Some(staged);
            outcome.not_safe = not_safe.filter(|not_safe| not_safe.files > 0);
        }
        let staged = outcome.stage_out.as_ref();
        outcome.drain = drain.zip(drained).map(|(drain, status)| drain.summary(status, staged));
        outcome.undelivered = missing;
        let time_ran_out = guard.is_some_and(|guard| {
            guard.has_ended_job() || guard.is_active() && self.is_asked_to_stop()
        });
        let incomplete = outcome.stage_out.as_ref().is_some_and(StagingSummary::is_incomplete);
        outcome.exit_code = exit_code(outcome.job_status, missing, time_ran_out, incomplete);
        self.check_capacity(node);
        if !missing {
            // The job is completed even if its record cannot be changed.
            let change =
                if context.spec.keep { Record::clear_stage_out } else { Record::mark_removing };
            let written = clear_pending(&self.requests_root).and_then(|()| recorded.update(change));
            if let Err(error) = written {
                context.reporter.warning(&error.to_string());
            }
        }
        if missing || (context.spec.keep && self.job_allocation.is_some()) {
            renew_keeper(recorded, context.reporter);
            let kept = node.data_location();
            outcome.kept = kept.map(|root| recorded.record.path_from_outside(&root));
        }
        outcome
    }

    /// Carries out the stage-out and lists unsaved files. `before` is the number of earlier stop requests.
    fn run_stage_out(
        &self,
        node: &dyn Node,
        recorded: &RecordFile,
        guard: Option<&Guard>,
        before: usize,
        missing: bool,
    ) -> (StagingSummary, Option<UnsavedFiles>) {
        let guard = guard.filter(|guard| guard.is_active());
        let ignored = |all: bool| if all { usize::MAX } else { before };
        // With an active guard the plan is completed: the list needs it, and SIGKILL may follow.
        match node.plan_stage_out(recorded, ignored(guard.is_some())) {
            Ok(()) => {}
            // The list would need a complete plan, which was just interrupted.
            Err(error @ MoverError::PlanInterrupted(_)) => {
                return (StagingSummary::not_started(error), None);
            }
            Err(error) => {
                let unsaved = node.list_unsaved(recorded, Some(&error.to_string()));
                return (StagingSummary::not_started(error), unsaved);
            }
        }
        let open = || {
            let Number { files, bytes } = node.outstanding();
            (files, bytes)
        };
        // From here on the scheduler may kill this process.
        let is_near = guard.is_some_and(|guard| self.is_asked_to_stop() || guard.is_near(open));
        if is_near {
            node.list_unsaved(recorded, None);
        }
        // A scheduler repeats SIGTERM before SIGKILL, so further ones do not stop the stage-out.
        let is_repeated = guard.is_some() && self.events.stops().is_by_sigterm();
        let staged = node.stage_out(ignored(is_repeated));
        let listed = missing || is_near || !staged.failures.is_empty();
        let unsaved = listed.then(|| node.list_unsaved(recorded, None));
        (staged, unsaved.flatten())
    }

    /// What a drain to another directory and requests of programs take is not looked for, and nothing where time is short.
    fn unnamed_files(
        &self,
        node: &LocalNode,
        began_unix_ms: u128,
        outcome: &Outcome,
    ) -> Option<UnnamedFiles> {
        let stage_out = node.stage_out_lines();
        let is_unclear = !stage_out.elsewhere.is_empty() || outcome.requested.is_some();
        if is_unclear || self.is_asked_to_stop() {
            return None;
        }
        let root = self.job_allocation?.allocation.root();
        UnnamedFiles::find(root, &stage_out, began_unix_ms, LOOK_TIME_MAX).ok()
    }

    /// Syncs an allocation that is on the file system; how long that took, in seconds. A write to the emulated file
    /// system returns when its bytes are on the targets.
    fn sync_file_system(&self) -> Option<f64> {
        let spec = self.context.spec;
        let is_here = spec.store_options.pfs_directory.is_some() && spec.emulation.is_none();
        let allocated = self.job_allocation.filter(|_| is_here)?;
        let started = clock::now();
        if let Err(error) = files::sync_tree(allocated.allocation.root()) {
            self.context.reporter.warning(&error.to_string());
            return None;
        }
        Some(started.elapsed().as_secs_f64())
    }

    fn is_asked_to_stop(&self) -> bool {
        self.events.stops().count() > 0
    }

    fn drained_job<'a>(&'a self, allocated: &'a JobAllocation) -> DrainedJob<'a> {
        let context = self.context;
        let spec = context.spec;
        DrainedJob {
            id: context.directory.id(),
            directory: context.directory.path(),
            request: &context.request,
            allocation: &allocated.allocation,
            roots: allocated.roots(&context.request),
            shared: self.shared_roots(allocated),
            node_local: spec.watched_node_local_path(),
            specs: spec.drain,
            spectral: &spec.spectral,
            verify: spec.staging.verify_without_journal(),
            write_failures: self.write_failures.clone(),
            messages: context.reporter,
        }
    }

    pub(crate) fn node<'a>(&'a self, drain: Option<&'a Drain<'a>>) -> LocalNode<'a> {
        let context = self.context;
        LocalNode {
            job_id: context.directory.id(),
            script: &context.spec.script.path,
            directory: context.directory.path(),
            request: &context.request,
            job_allocation: self.job_allocation,
            persistent: self.persistents.namespaces(),
            persistent_root: self.persistents.root(),
            requests_root: &self.requests_root,
            options: context.spec.staging,
            drain,
            stops: self.events.stops(),
            reporter: context.reporter,
            write_failures: &self.write_failures,
            store_watch: &self.store_watch,
            remotes: self.session.map(remote_copiers).unwrap_or_default(),
            planned: RefCell::default(),
        }
    }

    /// Starts the deadline guard if the job has a deadline and may have data to stage out.
    fn guard<'a>(
        &'a self,
        node: &LocalNode<'a>,
        stage_in: Option<&StagingSummary>,
    ) -> Option<Guard<'a>> {
        let context = self.context;
        let has_data = node.data_location().is_some();
        let store_options = context.spec.deadline.as_ref().filter(|_| has_data)?;
        let work = OpenStageOut { stage_out: node.stage_out_lines(), drain: node.drain };
        let nodes = context.spec.nodes_of(&context.request);
        let nodes = nodes.map_or(1, |nodes| nodes.names.len());
        let measurements = Measurements {
            stage_in: stage_in.map(|staged| (staged.copied_bytes, staged.seconds)),
            nodes,
            earlier: |nodes| recent_stage_outs(nodes).collect(),
            bytes_per_s_max: context.spec.staging.bytes_per_s_max,
        };
        let guard = Guard::new(
            store_options,
            context.under_scheduler,
            Box::new(work),
            measurements,
            JOB_GRACE,
            context.reporter,
        )?;
        guard.begin();
        Some(guard)
    }

    /// Starts the request server for the job's programs.
    fn requests(&self) -> Result<Option<Requests>, Error> {
        let context = self.context;
        let own = self.job_allocation;
        let place = RequestPlace {
            allocation: own.map(|own| (&own.allocation, own.used.capacity_bytes)),
            access: context.request.job.as_ref().map_or(&[], |job| &job.access),
            persistent: self.persistents.request_namespaces()?,
            list: self.requests_root.clone(),
            socket: own.map_or(context.directory.path(), |own| own.allocation.root()).to_owned(),
        };
        let (tag, how) = (context.directory.id(), context.spec.staging);
        Ok(Requests::listen(place, tag, how, self.write_failures.clone())?)
    }

    /// Ends the request server: completes requests, except copies left to the stage-out.
    fn end(
        &self,
        requests: &Requests,
        before: usize,
        skip_remaining_copies: bool,
    ) -> Option<Requested> {
        let (requested, trouble) =
            requests.end(&self.events.stops(), before, skip_remaining_copies);
        if let Some(error) = trouble {
            self.context.reporter.warning(&error.to_string());
        }
        Some(requested).filter(|requested| *requested != Requested::default())
    }

    /// Warns if the job exceeded a capacity that the file system does not enforce.
    pub(crate) fn check_capacity(&self, node: &dyn Node) {
        if let Some((used, is_all, capacity)) = node.over_capacity() {
            let (used, capacity) = (HumanBytes(used), HumanBytes(capacity));
            let or_more = if is_all { "" } else { " or more" };
            self.context.reporter.warning(&format!(
                "the job left {used}{or_more} in an allocation of {capacity}: where the size is enforced it \
                 would have seen ENOSPC"
            ));
        }
    }

    /// Checks that no destination is in the allocation, which is removed after the stage-out.
    fn check_destinations(&self, allocated: &JobAllocation) -> Result<(), Error> {
        let context = self.context;
        let stages = context.request.stage_out.iter();
        let mut named = stages.filter(|stage| stage.kind != StageKind::List);
        match named
            .find(|stage| is_inside_allocation(&allocated.allocation, Path::new(&stage.pfs_path)))
        {
            Some(stage) => Err(Error::StageOutInside {
                script: context.spec.script.path.clone(),
                position: stage.position,
                command: stage.command(Direction::Out),
                destination: stage.pfs_path.clone(),
            }),
            None => Ok(()),
        }
    }
}

/// Starts another keeper if the one of our view was killed: a view that is kept must outlive this process.
pub(crate) fn renew_keeper(recorded: &mut RecordFile, reporter: &dyn Reporter) {
    if recorded.record.keeper.is_none_or(Identity::holds_view) {
        return;
    }
    let renewed = Keeper::in_our_view().and_then(|mut keeper| {
        recorded.record_step(Step::Keeper(keeper.identity()))?;
        keeper.pin()
    });
    if let Err(error) = renewed {
        let what = "the files in memory end with this process, since their keeper was killed";
        reporter.warning(&format!("{what}: {error}"));
    }
}
