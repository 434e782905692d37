//! A job that has its allocation: stage in, run, stage out.

use std::path::{Path, PathBuf};

use forebay_directive::{AccessMode, Request, StageKind};
use forebay_host::files;
use forebay_host::process::{Events, Identity};
use forebay_mover::Journal;
use indicatif::HumanBytes;

use crate::execution::{Executed, Execution, Program};
use crate::job_directory::JobDirectory;
use crate::order::{Direction, Order, Watcher};
use crate::outcome::exit_code;
use crate::placement::{Space, namespace_directory};
use crate::profile::Profile;
use crate::record::{Phase, Record, Recorded};
use crate::requests::{Requests, are_open_in, none_is_open};
use crate::staging::{Staging, lies_in, plan_in, plan_out};
use crate::{Error, Outcome, Requested, Staged};

/// Reasons that are told of a stage-in that cannot begin.
pub(crate) const FAILURES_MAX: usize = 1000;

/// A job whose script was read and understood.
pub(crate) struct Life<'a> {
    pub(crate) order: &'a Order<'a>,
    pub(crate) directory: &'a JobDirectory,
    pub(crate) watcher: &'a dyn Watcher,
    pub(crate) request: Request,
    pub(crate) submitted_in: PathBuf,
    pub(crate) works_in: PathBuf,
    /// The scheduler's where there is one, else our own.
    pub(crate) job_id: String,
    pub(crate) under_scheduler: bool,
}

/// A job that has its allocation.
pub(crate) struct Running<'a> {
    pub(crate) life: &'a Life<'a>,
    pub(crate) events: Events,
    pub(crate) keeper: Option<Identity>,
    pub(crate) space: Option<&'a Space>,
}

impl Running<'_> {
    pub(crate) fn live(
        &self,
        profile: Option<&Profile>,
        recorded: &mut Recorded,
    ) -> Result<Outcome, Error> {
        let life = self.life;
        if let Some(space) = self.space {
            self.check_destinations(space)?;
        }
        let stage_in = self.stage_in(|_| true)?;
        if self.events.stops().count() > 0 {
            return Err(Error::Stopped);
        }
        recorded.update(|record| {
            record.phase = Phase::Running;
            record.stage_out.clone_from(&life.request.stage_out);
        })?;
        let recording = life.order.recording.as_ref();
        let requests = self.requests()?;
        let socket = requests.iter().map(Requests::variable);
        let environment = socket.collect();
        let execution = Execution {
            program: Program::Script(life.order.script),
            submitted_in: &life.submitted_in,
            works_in: &life.works_in,
            environment: &environment,
            output: life.order.output,
            time_limit: life.order.time_limit,
            recording: profile.zip(recording),
        };
        // From here on there may be data in the allocation that exist nowhere else.
        let executed = self.execute(&execution).map_err(|error| match error {
            Error::LostSight { error, .. } => Error::LostSight {
                error,
                kept: self.space.map(|space| space.allocation.root().to_owned()),
            },
            error => error,
        })?;
        let mut outcome = self.outcome(&execution, executed, stage_in);
        let before = self.events.stops().count();
        outcome.requested = requests.and_then(|requests| self.end(&requests, before));
        Ok(match self.space {
            Some(space) => self.after_the_script(outcome, space, before, recorded),
            None => outcome,
        })
    }

    pub(crate) fn outcome(
        &self,
        execution: &Execution,
        executed: Executed,
        stage_in: Option<Staged>,
    ) -> Outcome {
        let life = self.life;
        let profile = execution.recording.map(|(profile, _)| profile.directory());
        Outcome {
            job_id: life.job_id.clone(),
            run_id: life.directory.id().to_owned(),
            script: execution.script(life).path.clone(),
            store: self.space.map(|space| space.used.clone()),
            stage_in,
            job_status: executed.status,
            job_s: executed.seconds,
            stage_out: None,
            requested: None,
            leftover_processes: executed.leftovers.found,
            unended_processes: executed.leftovers.remaining,
            undelivered: false,
            kept: None,
            profile: profile.map(Path::to_owned),
            exit_code: executed.status,
        }
    }

    /// Stage-out. The allocation is kept unless everything asked for arrived.
    fn after_the_script(
        &self,
        mut outcome: Outcome,
        space: &Space,
        before: usize,
        recorded: &mut Recorded,
    ) -> Outcome {
        let life = self.life;
        self.check_capacity(space);
        let mut missing = !outcome.unended_processes.is_empty();
        if !life.request.stage_out.is_empty() || are_open_in(space.allocation.root()) {
            let staging = self.staging(Direction::Out);
            let journal = plan_out(&life.request.stage_out, &space.allocation, recorded);
            let staged = match journal {
                Ok(journal) => staging.carry_out(&journal, before),
                Err(error) => Staged::refused(error),
            };
            missing |= !staged.failures.is_empty();
            outcome.stage_out = Some(staged);
        }
        outcome.undelivered = missing;
        outcome.exit_code = exit_code(outcome.job_status, missing);
        if !missing {
            // Whatever becomes of the record, the job has ended well.
            let change = if life.order.keep {
                Record::is_drained
            } else {
                Record::is_removed
            };
            let written =
                none_is_open(space.allocation.root()).and_then(|()| recorded.update(change));
            if let Err(error) = written {
                life.watcher.warning(&error.to_string());
            }
        }
        if missing || life.order.keep {
            outcome.kept = Some(recorded.record.reachable_root(space.allocation.root()));
        }
        outcome
    }

    /// Listens to what the job's programs ask.
    fn requests(&self) -> Result<Option<Requests>, Error> {
        let asked = self.life.request.job.as_ref();
        match asked.zip(self.space) {
            Some((job, space)) => Requests::listen(space, &job.access, self.life.directory.id()),
            None => Ok(None),
        }
    }

    /// Brings to its end what the job's programs asked for, but for what is to be staged out now.
    fn end(&self, requests: &Requests, before: usize) -> Option<Requested> {
        let (requested, trouble) = requests.end(&self.events.stops(), before);
        if let Some(error) = trouble {
            self.life.watcher.warning(&error.to_string());
        }
        Some(requested).filter(|requested| *requested != Requested::default())
    }

    /// Where the size is no limit of the file system's own, going beyond it is at least said.
    pub(crate) fn check_capacity(&self, space: &Space) {
        if space.used.enforced {
            return;
        }
        let used = files::tree_bytes(space.allocation.root());
        if used > space.used.capacity_bytes {
            let (used, capacity) = (HumanBytes(used), HumanBytes(space.used.capacity_bytes));
            self.life.watcher.warning(&format!(
                "the job left {used} in an allocation of {capacity}: where the size is enforced it \
                 would have seen ENOSPC"
            ));
        }
    }

    /// What is staged out must not end in what is removed next.
    fn check_destinations(&self, space: &Space) -> Result<(), Error> {
        let life = self.life;
        let stages = life.request.stage_out.iter();
        let mut named = stages.filter(|stage| stage.kind != StageKind::List);
        match named.find(|stage| lies_in(&space.allocation, Path::new(&stage.pfs_path))) {
            Some(stage) => Err(Error::StageOutInside {
                script: life.order.script.path.clone(),
                place: stage.place,
                destination: stage.pfs_path.clone(),
            }),
            None => Ok(()),
        }
    }

    /// Stages in what goes to the wanted places; none if nothing is to be staged in.
    pub(crate) fn stage_in(
        &self,
        is_wanted: impl Fn(&Path) -> bool,
    ) -> Result<Option<Staged>, Error> {
        let life = self.life;
        let Some(space) = self.space.filter(|_| !life.request.stage_in.is_empty()) else {
            return Ok(None);
        };
        let root = space
            .allocation
            .namespace(namespace_directory(AccessMode::Striped));
        // A stage-in that is killed is never gone on with, so its journal need not outlive the job.
        let path = life.directory.path().join("stage-in.journal");
        let journal = Journal::open(&path)?;
        let script = &life.order.script.path;
        let stages = &life.request.stage_in;
        plan_in(&journal, stages, &root, script, &[], &is_wanted)?;
        space.used.must_hold(journal.counts()?.open().bytes)?;
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
        }
    }
}
