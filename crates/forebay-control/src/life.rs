//! The steps of a job, in order, and what is undone when one of them fails.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use forebay_directive::{AccessMode, Request, Stage, StageKind, Symbols};
use forebay_host::process::{Events, Job, command, start_job};
use forebay_host::{clock, files, machine};
use forebay_mover::{Failure, Moved, Options, Plan, Transfer, What, carry_out};
use forebay_store::{Allocation, Store};

use crate::launchers::Shims;
use crate::outcome::exit_code;
use crate::{Error, JobScript, Outcome, SHIMS_VARIABLE, Staged, StoreUsed, environment};

/// Time a job has between SIGTERM and SIGKILL.
const JOB_GRACE: Duration = Duration::from_secs(10);
/// The same for processes that the job left behind.
const LEFTOVER_GRACE: Duration = Duration::from_secs(2);
/// Threads that copy. Staging runs while the job does not, so it may use the machine.
const STAGING_WORKERS: usize = 4;
/// A file larger than this is copied by several threads.
const PIECE_BYTES: u64 = 64 << 20;

/// What is to be run, and how.
#[derive(Debug)]
pub struct Order<'a> {
    /// The script.
    pub script: &'a JobScript,
    /// Directory in which the allocation is made; none for the default.
    pub store: Option<&'a Path>,
    /// Obey the directives? If not, they are the comments they look like.
    pub burst_buffer: bool,
    /// Where the script's standard output goes.
    pub output: Output<'a>,
    /// Launchers that our own program stands in for where there is no scheduler.
    pub shims: &'a [&'a str],
}

/// Where the script's standard output goes.
#[derive(Debug, Clone, Copy)]
pub enum Output<'a> {
    /// To ours.
    Inherit,
    /// To our standard error.
    Error,
    /// To a file, made or emptied.
    File(&'a Path),
}

/// Into the burst buffer or out of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Before the job.
    In,
    /// After the job.
    Out,
}

/// Told of what happens, as it happens.
pub trait Watcher: Sync {
    /// The allocation was made.
    fn allocated(&self, used: &StoreUsed);
    /// Staging begins: so many files and bytes.
    fn staging(&self, direction: Direction, files: u64, bytes: u64);
    /// So many bytes more were copied. Called by several threads.
    fn moved(&self, bytes: u64);
    /// Staging has ended.
    fn staged(&self, direction: Direction, staged: &Staged);
    /// The script is started.
    fn running(&self, id: &str);
    /// Something the user should know.
    fn warning(&self, text: &str);
}

/// Brings a job from its script to its end.
///
/// # Errors
/// If the job was not started; nothing is left behind then. What goes wrong later is in the
/// [`Outcome`].
pub fn run(order: &Order, events: &Events, watcher: &dyn Watcher) -> Result<Outcome, Error> {
    let shims = Shims::make(&machine::this_program()?, order.shims)?;
    let done = Life::new(order, &shims, events, watcher).and_then(|life| life.live());
    let removed = shims.remove();
    let outcome = done?;
    removed?;
    Ok(outcome)
}

struct Life<'a> {
    order: &'a Order<'a>,
    shims: &'a Shims,
    events: &'a Events,
    watcher: &'a dyn Watcher,
    request: Request,
    submitted_in: PathBuf,
    under_scheduler: bool,
}

/// The job's allocation and what is known of it.
struct Space {
    allocation: Allocation,
    used: StoreUsed,
}

impl<'a> Life<'a> {
    fn new(
        order: &'a Order<'a>,
        shims: &'a Shims,
        events: &'a Events,
        watcher: &'a dyn Watcher,
    ) -> Result<Self, Error> {
        let submitted_in = machine::current_directory()?;
        let slurm_id = std::env::var("SLURM_JOB_ID").ok();
        let slurm_id = slurm_id.filter(|_| crate::shim_directory().is_none());
        let symbols = Symbols {
            job_id: slurm_id.clone().unwrap_or_else(|| shims.id().to_owned()),
            job_name: order.script.job_name(),
            user: machine::user_name(),
            directory: submitted_in.to_string_lossy().into_owned(),
            array_task: std::env::var("SLURM_ARRAY_TASK_ID").unwrap_or_default(),
        };
        let request = if order.burst_buffer {
            let parsed = forebay_directive::parse(&order.script.text, &symbols);
            parsed.map_err(|problems| Error::Directives {
                script: order.script.path.clone(),
                problems,
            })?
        } else {
            Request::default()
        };
        Ok(Self {
            order,
            shims,
            events,
            watcher,
            request,
            submitted_in,
            under_scheduler: slurm_id.is_some(),
        })
    }

    fn live(&self) -> Result<Outcome, Error> {
        let space = self.allocate()?;
        match self.until_the_script_runs(space.as_ref()) {
            Ok((stage_in, job)) => self.until_the_end(stage_in, job, space),
            Err(error) => {
                if let Some(space) = space {
                    space.allocation.free()?;
                }
                Err(error)
            }
        }
    }

    fn allocate(&self) -> Result<Option<Space>, Error> {
        let Some(asked) = &self.request.job else {
            return Ok(None);
        };
        let store = Store::choose(self.order.store)?;
        let grant = store.grant(asked.capacity_bytes)?;
        let used = StoreUsed {
            directory: store.directory().to_owned(),
            in_memory: store.in_memory(),
            capacity_bytes: grant.capacity_bytes,
            asked_bytes: asked.capacity_bytes,
        };
        let namespaces: Vec<_> = asked.access.iter().map(|mode| namespace(*mode)).collect();
        let allocation = store.allocate(self.shims.id(), &namespaces)?;
        self.watcher.allocated(&used);
        Ok(Some(Space { allocation, used }))
    }

    fn until_the_script_runs(&self, space: Option<&Space>) -> Result<(Option<Staged>, Job), Error> {
        let stage_in = match space {
            Some(space) if !self.request.stage_in.is_empty() => Some(self.stage_in(space)?),
            _ => None,
        };
        if self.events.stops().count() > 0 {
            return Err(Error::Stopped);
        }
        Ok((stage_in, self.start_script(space)?))
    }

    /// From here on there may be data in the allocation that exist nowhere else.
    fn until_the_end(
        &self,
        stage_in: Option<Staged>,
        job: Job,
        space: Option<Space>,
    ) -> Result<Outcome, Error> {
        let started = clock::now();
        let ended = self.events.wait(job, JOB_GRACE).and_then(|(ended, asked)| {
            let job_s = started.elapsed().as_secs_f64();
            let status = asked.map_or(ended.shell_status(), |signal| 128 + signal);
            Ok((status, job_s, self.events.end_leftovers(LEFTOVER_GRACE)?))
        });
        let (job_status, job_s, leftover_processes) = ended.map_err(|error| Error::LostSight {
            error,
            kept: space
                .as_ref()
                .map(|space| space.allocation.root().to_owned()),
        })?;
        let outcome = Outcome {
            job_id: self.shims.id().to_owned(),
            script: self.order.script.path.clone(),
            store: space.as_ref().map(|space| space.used.clone()),
            stage_in,
            job_status,
            job_s,
            stage_out: None,
            leftover_processes,
            kept: None,
            exit_code: job_status,
        };
        Ok(self.after_the_script(outcome, space))
    }

    fn stage_in(&self, space: &Space) -> Result<Staged, Error> {
        let root = space.allocation.namespace(namespace(AccessMode::Striped));
        let mut plan = Plan::default();
        for stage in &self.request.stage_in {
            let target = root.join(&stage.inner_path);
            plan.add(&transfer(stage, stage.pfs_path.clone().into(), target))
                .map_err(|error| Error::StageInSource {
                    script: self.order.script.path.clone(),
                    line: stage.place.line,
                    message: error.to_string(),
                })?;
        }
        if plan.bytes() > space.used.capacity_bytes {
            return Err(Error::DoesNotFit {
                needed_bytes: plan.bytes(),
                capacity_bytes: space.used.capacity_bytes,
                store: space.used.directory.clone(),
            });
        }
        if !plan.failures.is_empty() {
            return Err(Error::StageIn(plan.failures));
        }
        let (moved, seconds) = self.stage(Direction::In, &plan);
        if self.events.stops().count() > 0 {
            return Err(Error::Stopped);
        }
        let staged = Staged::new(&moved, seconds);
        self.watcher.staged(Direction::In, &staged);
        if moved.failures.is_empty() {
            Ok(staged)
        } else {
            Err(Error::StageIn(moved.failures))
        }
    }

    fn stage(&self, direction: Direction, plan: &Plan) -> (Moved, f64) {
        let started = clock::now();
        let stops = self.events.stops();
        let before = match direction {
            Direction::In => 0,
            Direction::Out => stops.count(),
        };
        let options = Options {
            workers: STAGING_WORKERS,
            piece_bytes: PIECE_BYTES,
            durable: direction == Direction::Out,
            tag: self.shims.id().to_owned(),
        };
        self.watcher.staging(direction, plan.files(), plan.bytes());
        let on_bytes = |bytes| self.watcher.moved(bytes);
        let moved = carry_out(plan, &options, &on_bytes, &|| stops.count() > before);
        (moved, started.elapsed().as_secs_f64())
    }

    fn start_script(&self, space: Option<&Space>) -> Result<Job, Error> {
        let script = self.order.script;
        let mut process = command(&script.interpreter[0]);
        process
            .args(&script.interpreter[1..])
            .arg(files::real_path(&script.path)?);
        let directory = script.header.directory.as_ref();
        process.current_dir(directory.unwrap_or(&self.submitted_in));
        process.stdin(Stdio::null());
        match self.order.output {
            Output::Inherit => {}
            Output::Error => {
                process.stdout(std::io::stderr());
            }
            Output::File(path) => {
                process.stdout(files::open_to_write(path)?);
            }
        }
        if !self.under_scheduler {
            process.env("PATH", environment::path_behind(self.shims.directory()));
            process.env(SHIMS_VARIABLE, self.shims.directory());
            process.envs(environment::slurm(
                script,
                self.shims.id(),
                &self.submitted_in,
            ));
        }
        for mode in self.request.job.iter().flat_map(|job| &job.access) {
            if let Some(space) = space {
                let root = space.allocation.namespace(namespace(*mode));
                process.env(mode.variable(), environment::with_slash(&root));
            }
        }
        self.watcher.running(self.shims.id());
        Ok(start_job(process)?)
    }

    /// Stage-out and teardown. The allocation is removed only if everything asked for arrived.
    fn after_the_script(&self, mut outcome: Outcome, space: Option<Space>) -> Outcome {
        let Some(space) = space else {
            return outcome;
        };
        let root = space.allocation.root().to_owned();
        if !self.request.stage_out.is_empty() {
            let staged = self.stage_out(&space);
            self.watcher.staged(Direction::Out, &staged);
            outcome.exit_code = exit_code(outcome.job_status, &staged);
            if !staged.failures.is_empty() {
                outcome.kept = Some(root.clone());
            }
            outcome.stage_out = Some(staged);
        }
        if outcome.kept.is_none()
            && let Err(error) = space.allocation.free()
        {
            self.watcher.warning(&error.to_string());
            outcome.kept = Some(root);
        }
        outcome
    }

    fn stage_out(&self, space: &Space) -> Staged {
        let root = space.allocation.namespace(namespace(AccessMode::Striped));
        let mut plan = Plan::default();
        for stage in &self.request.stage_out {
            let source = root.join(&stage.inner_path);
            if let Err(error) = plan.add(&transfer(stage, source, stage.pfs_path.clone().into())) {
                plan.failures.push(Failure::from(error));
            }
        }
        let (moved, seconds) = self.stage(Direction::Out, &plan);
        Staged::new(&moved, seconds)
    }
}

/// Directory of a namespace within the allocation.
fn namespace(mode: AccessMode) -> &'static str {
    match mode {
        AccessMode::Striped => "striped",
        AccessMode::Private => "private",
    }
}

fn transfer(stage: &Stage, source: PathBuf, target: PathBuf) -> Transfer {
    let what = match stage.kind {
        StageKind::File => What::File,
        StageKind::Directory => What::Directory,
    };
    Transfer {
        what,
        source,
        target,
    }
}
