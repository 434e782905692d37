//! The steps of a job, in order, and what is undone when one of them fails.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use forebay_directive::{AccessMode, Request, Stage, StageKind};
use forebay_host::files::{self, Kind};
use forebay_host::process::{Ended, Events, Job, Leftovers, command, start_job};
use forebay_host::{clock, machine};
use forebay_mover::{Failure, Moved, Options, Plan, Transfer, What, carry_out};
use forebay_store::{Allocation, Store};

use crate::job_directory::JobDirectory;
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
    /// Words behind it, for the script.
    pub arguments: &'a [OsString],
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
    /// The script has ended: its status as a shell shows it, and seconds.
    fn ended(&self, id: &str, status: i32, seconds: f64);
    /// Processes that the script had left behind were ended, as far as they could be.
    fn leftovers(&self, leftovers: &Leftovers);
    /// Something the user should know.
    fn warning(&self, text: &str);
}

/// Brings a job from its script to its end.
///
/// # Errors
/// If the job was not started; nothing is left behind then. What goes wrong later is in the
/// [`Outcome`].
pub fn run(order: &Order, events: &Events, watcher: &dyn Watcher) -> Result<Outcome, Error> {
    let directory = JobDirectory::make()?;
    let done = Life::new(order, &directory, events, watcher).and_then(|life| life.live());
    if let Err(error) = directory.remove() {
        watcher.warning(&error.to_string());
    }
    done
}

struct Life<'a> {
    order: &'a Order<'a>,
    directory: &'a JobDirectory,
    events: &'a Events,
    watcher: &'a dyn Watcher,
    request: Request,
    submitted_in: PathBuf,
    works_in: PathBuf,
    /// Slurm's where there is one, else our own.
    job_id: String,
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
        directory: &'a JobDirectory,
        events: &'a Events,
        watcher: &'a dyn Watcher,
    ) -> Result<Self, Error> {
        let submitted_in = machine::current_directory()?;
        let works_in = order.script.works_in(&submitted_in);
        let is_directory = files::status(&works_in).is_ok_and(|s| s.kind == Kind::Directory);
        if !is_directory {
            return Err(Error::NoDirectory(works_in));
        }
        let slurm_id = std::env::var("SLURM_JOB_ID").ok();
        let slurm_id = slurm_id.filter(|_| std::env::var_os(SHIMS_VARIABLE).is_none());
        let job_id = slurm_id
            .clone()
            .unwrap_or_else(|| directory.id().to_owned());
        let request = if order.burst_buffer {
            order.script.request(&submitted_in, &job_id)?
        } else {
            Request::default()
        };
        Ok(Self {
            order,
            directory,
            events,
            watcher,
            request,
            submitted_in,
            works_in,
            job_id,
            under_scheduler: slurm_id.is_some(),
        })
    }

    fn live(&self) -> Result<Outcome, Error> {
        let space = self.allocate()?;
        match self.until_the_script_runs(space.as_ref()) {
            Ok((stage_in, job)) => self.until_the_end(stage_in, job, space),
            Err(error) => {
                if let Some(Err(second)) = space.map(|space| space.allocation.free()) {
                    self.watcher.warning(&second.to_string());
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
        let allocation = store.allocate(self.directory.id(), &namespaces)?;
        self.watcher.allocated(&used);
        Ok(Some(Space { allocation, used }))
    }

    fn until_the_script_runs(&self, space: Option<&Space>) -> Result<(Option<Staged>, Job), Error> {
        if let Some(space) = space {
            self.check_destinations(space)?;
        }
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
            let status = match (ended, asked) {
                (Ended::Signal(_), Some(signal)) => 128 + signal,
                _ => ended.shell_status(),
            };
            self.watcher.ended(&self.job_id, status, job_s);
            Ok((status, job_s, self.events.end_leftovers(LEFTOVER_GRACE)?))
        });
        let (job_status, job_s, leftovers) = ended.map_err(|error| Error::LostSight {
            error,
            kept: space
                .as_ref()
                .map(|space| space.allocation.root().to_owned()),
        })?;
        if leftovers != Leftovers::default() {
            self.watcher.leftovers(&leftovers);
        }
        let outcome = Outcome {
            job_id: self.job_id.clone(),
            script: self.order.script.path.clone(),
            store: space.as_ref().map(|space| space.used.clone()),
            stage_in,
            job_status,
            job_s,
            stage_out: None,
            leftover_processes: leftovers.found,
            unended_processes: leftovers.remaining,
            kept: None,
            exit_code: job_status,
        };
        Ok(self.after_the_script(outcome, space))
    }

    /// What is staged out must not end in what is removed next.
    fn check_destinations(&self, space: &Space) -> Result<(), Error> {
        let root = files::real_path(space.allocation.root())?;
        for stage in &self.request.stage_out {
            if files::nearest_real_path(Path::new(&stage.pfs_path))?.starts_with(&root) {
                return Err(Error::StageOutInside {
                    script: self.order.script.path.clone(),
                    line: stage.place.line,
                    destination: stage.pfs_path.clone(),
                });
            }
        }
        Ok(())
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
        let (moved, seconds) = self.stage(Direction::In, &plan, 0);
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

    /// Copies what is planned, until it is done or we are asked to stop more than `before` times.
    fn stage(&self, direction: Direction, plan: &Plan, before: usize) -> (Moved, f64) {
        let started = clock::now();
        let stops = self.events.stops();
        let options = Options {
            workers: STAGING_WORKERS,
            piece_bytes: PIECE_BYTES,
            durable: direction == Direction::Out,
            tag: self.directory.id().to_owned(),
        };
        self.watcher.staging(direction, plan.files(), plan.bytes());
        let on_bytes = |bytes| self.watcher.moved(bytes);
        let moved = carry_out(plan, &options, &on_bytes, &|| stops.count() > before);
        (moved, started.elapsed().as_secs_f64())
    }

    fn start_script(&self, space: Option<&Space>) -> Result<Job, Error> {
        let script = self.order.script;
        let mut process = command(&script.interpreter[0]);
        process.args(&script.interpreter[1..]);
        process.arg(self.directory.add_script(script)?);
        process.args(self.order.arguments);
        process.current_dir(&self.works_in).stdin(Stdio::null());
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
            let launchers = self.directory.launchers();
            self.directory
                .add_launchers(&machine::this_program()?, self.order.shims)?;
            let start_up = self
                .directory
                .add_bash_start_up(environment::BASH_START_UP)?;
            process.envs(environment::launchers(&launchers, &start_up));
            process.envs(environment::slurm(script, &self.job_id, &self.submitted_in));
        }
        // A job within a job must not take the outer one's allocation for its own.
        for mode in [AccessMode::Striped, AccessMode::Private] {
            process.env_remove(mode.variable());
        }
        for mode in self.request.job.iter().flat_map(|job| &job.access) {
            if let Some(space) = space {
                let root = space.allocation.namespace(namespace(*mode));
                process.env(mode.variable(), environment::with_slash(&root));
            }
        }
        self.watcher.running(&self.job_id);
        Ok(start_job(process)?)
    }

    /// Stage-out and teardown. The allocation is removed only if everything asked for arrived.
    fn after_the_script(&self, mut outcome: Outcome, space: Option<Space>) -> Outcome {
        let Some(space) = space else {
            return outcome;
        };
        let root = space.allocation.root().to_owned();
        let mut missing = !outcome.unended_processes.is_empty();
        if !self.request.stage_out.is_empty() {
            let staged = self.stage_out(&space);
            self.watcher.staged(Direction::Out, &staged);
            missing |= !staged.failures.is_empty();
            outcome.stage_out = Some(staged);
        }
        outcome.exit_code = exit_code(outcome.job_status, missing);
        if missing {
            outcome.kept = Some(root);
        } else if let Err(error) = space.allocation.free() {
            self.watcher.warning(&error.to_string());
            outcome.kept = Some(root);
        }
        outcome
    }

    fn stage_out(&self, space: &Space) -> Staged {
        let before = self.events.stops().count();
        let root = space.allocation.namespace(namespace(AccessMode::Striped));
        let mut plan = Plan::default();
        for stage in &self.request.stage_out {
            let source = root.join(&stage.inner_path);
            if let Err(error) = plan.add(&transfer(stage, source, stage.pfs_path.clone().into())) {
                plan.failures.push(Failure::from(error));
            }
        }
        let (moved, seconds) = self.stage(Direction::Out, &plan, before);
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
