//! A job that has its allocation: stage in, run, stage out.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use forebay_directive::{AccessMode, Request, StageKind};
use forebay_host::process::{Asked, Ended, Events, Job, Leftovers, command, start_job};
use forebay_host::{clock, files, machine};
use indicatif::HumanBytes;

use crate::job_directory::JobDirectory;
use crate::order::{Direction, Order, Output, Watcher};
use crate::outcome::exit_code;
use crate::placement::{Space, namespace_directory};
use crate::profile::Profile;
use crate::record::{Phase, Record, Recorded};
use crate::staging::{Staging, lies_in, plan_in, plan_out};
use crate::{Error, Outcome, RUN_VARIABLE, Staged, TIME_LIMIT_REACHED, environment};

/// Time a job has between SIGTERM and SIGKILL.
pub(crate) const JOB_GRACE: Duration = Duration::from_secs(10);
/// The same for processes that the job left behind.
pub(crate) const LEFTOVER_GRACE: Duration = Duration::from_secs(2);

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
    pub(crate) profile: Option<&'a Profile>,
}

/// A job that has its allocation.
pub(crate) struct Running<'a> {
    pub(crate) life: &'a Life<'a>,
    pub(crate) events: Events,
    pub(crate) space: Option<&'a Space>,
}

impl Running<'_> {
    pub(crate) fn live(&self, recorded: &mut Recorded) -> Result<Outcome, Error> {
        let mut stage_in = None;
        if let Some(space) = self.space {
            self.check_destinations(space)?;
            if !self.life.request.stage_in.is_empty() {
                stage_in = Some(self.stage_in(space)?);
            }
        }
        if self.events.stops().count() > 0 {
            return Err(Error::Stopped);
        }
        recorded.update(|record| record.phase = Phase::Running)?;
        let job = self.start_script()?;
        self.until_the_end(stage_in, job, recorded)
    }

    /// From here on there may be data in the allocation that exist nowhere else.
    fn until_the_end(
        &self,
        stage_in: Option<Staged>,
        job: Job,
        recorded: &mut Recorded,
    ) -> Result<Outcome, Error> {
        let life = self.life;
        let started = clock::now();
        let ended = self.events.wait(job, life.order.time_limit, JOB_GRACE);
        let ended = ended.and_then(|(ended, asked)| {
            let job_s = started.elapsed().as_secs_f64();
            let status = status(ended, asked);
            if asked == Some(Asked::TimeLimit) {
                life.watcher
                    .warning("the job was ended: its time limit was reached");
            }
            life.watcher.ended(&life.job_id, status, job_s);
            Ok((status, job_s, self.events.end_leftovers(LEFTOVER_GRACE)?))
        });
        let (job_status, job_s, leftovers) = ended.map_err(|error| Error::LostSight {
            error,
            kept: self.space.map(|space| space.allocation.root().to_owned()),
        })?;
        if leftovers != Leftovers::default() {
            life.watcher.leftovers(&leftovers);
        }
        let outcome = Outcome {
            job_id: life.job_id.clone(),
            run_id: life.directory.id().to_owned(),
            script: life.order.script.path.clone(),
            store: self.space.map(|space| space.used.clone()),
            stage_in,
            job_status,
            job_s,
            stage_out: None,
            leftover_processes: leftovers.found,
            unended_processes: leftovers.remaining,
            undelivered: false,
            kept: None,
            profile: life.profile.map(|profile| profile.directory().to_owned()),
            exit_code: job_status,
        };
        Ok(match self.space {
            Some(space) => self.after_the_script(outcome, space, recorded),
            None => outcome,
        })
    }

    /// Stage-out. The allocation is kept unless everything asked for arrived.
    fn after_the_script(
        &self,
        mut outcome: Outcome,
        space: &Space,
        recorded: &mut Recorded,
    ) -> Outcome {
        let life = self.life;
        self.check_capacity(space);
        let mut missing = !outcome.unended_processes.is_empty();
        if !life.request.stage_out.is_empty() {
            let before = self.events.stops().count();
            let plan = plan_out(&life.request.stage_out, &space.allocation);
            let staged = self.staging(Direction::Out).carry_out(&plan, before);
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
            if let Err(error) = recorded.update(change) {
                life.watcher.warning(&error.to_string());
            }
        }
        if missing || life.order.keep {
            outcome.kept = Some(recorded.record.reachable_root(space.allocation.root()));
        }
        outcome
    }

    /// Where the size is no limit of the file system's own, going beyond it is at least said.
    fn check_capacity(&self, space: &Space) {
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

    fn stage_in(&self, space: &Space) -> Result<Staged, Error> {
        let life = self.life;
        let root = space
            .allocation
            .namespace(namespace_directory(AccessMode::Striped));
        let plan = plan_in(&life.request.stage_in, &root, &life.order.script.path, &[])?;
        space.used.must_hold(plan.bytes())?;
        if !plan.failures.is_empty() {
            return Err(Error::StageIn(plan.failures));
        }
        let staged = self.staging(Direction::In).carry_out(&plan, 0);
        if self.events.stops().count() > 0 {
            return Err(Error::Stopped);
        }
        if staged.failures.is_empty() {
            Ok(staged)
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

    fn start_script(&self) -> Result<Job, Error> {
        let life = self.life;
        let script = life.order.script;
        let mut process = command(&script.interpreter[0]);
        process.args(&script.interpreter[1..]);
        process.arg(life.directory.add_script(script)?);
        process.args(life.order.arguments);
        process.current_dir(&life.works_in).stdin(Stdio::null());
        match life.order.output {
            Output::Inherit => {}
            Output::Error => {
                process.stdout(std::io::stderr());
            }
            Output::File(path) => {
                process.stdout(files::open_to_write(path)?);
            }
        }
        if !life.under_scheduler {
            let launchers = life.directory.launchers();
            life.directory
                .add_launchers(&machine::this_program()?, life.order.shims)?;
            let start_up = life
                .directory
                .add_bash_start_up(environment::BASH_START_UP)?;
            process.envs(environment::launchers(&launchers, &start_up));
            process.envs(environment::scheduler(
                script,
                &life.job_id,
                &life.submitted_in,
                life.directory,
            )?);
        }
        process.env(RUN_VARIABLE, life.directory.with_outer_runs());
        if std::env::var_os("USER").is_none() {
            // As schedulers do; containers do not. Scripts say /mnt/bb/$USER, which we show by this name.
            process.env("USER", machine::user_name());
        }
        // A job within a job must not take the outer one's allocation for its own.
        for mode in [AccessMode::Striped, AccessMode::Private] {
            process.env_remove(mode.variable());
        }
        for mode in life.request.job.iter().flat_map(|job| &job.access) {
            if let Some(space) = self.space {
                let root = space.allocation.namespace(namespace_directory(*mode));
                process.env(mode.variable(), environment::with_slash(&root));
            }
        }
        if let (Some(profile), Some(recording)) = (life.profile, &life.order.recording) {
            process.envs(profile.environment(recording, None, life.watcher));
        }
        life.watcher.running(&life.job_id);
        Ok(start_job(process)?)
    }
}

/// The status of the job as a shell shows it; that of timeout(1) if its time was up.
pub(crate) fn status(ended: Ended, asked: Option<Asked>) -> i32 {
    match (ended, asked) {
        (_, Some(Asked::TimeLimit)) => TIME_LIMIT_REACHED,
        (Ended::Signal(_), Some(Asked::Signal(signal))) => 128 + signal,
        _ => ended.shell_status(),
    }
}
