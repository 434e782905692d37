//! The steps of a job, in order, and what is undone when one of them fails.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay_directive::{AccessMode, JobDw, Origin, Place, Request};
use forebay_host::files::{self, Kind};
use forebay_host::machine;
use forebay_host::process::{Caught, Leftovers};

use crate::job_directory::JobDirectory;
use crate::placement::{Placement, Placing, Wishes};
use crate::record::{Phase, Record, Recorded};
use crate::running::Running;
use crate::{Error, JobScript, Outcome, Staged, StoreUsed, environment};

/// What a Summit node had in local NVMe: asked for where a script asks for "the" local storage.
const NODE_LOCAL_BYTES: u64 = 1_600_000_000_000;
/// Where such a script finds it, with the user's name behind.
const NODE_LOCAL_PATH: &str = "/mnt/bb";

/// What is to be run, and how.
#[derive(Debug)]
pub struct Order<'a> {
    /// The script.
    pub script: &'a JobScript,
    /// Words behind it, for the script.
    pub arguments: &'a [OsString],
    /// Where allocations lie.
    pub wishes: Wishes<'a>,
    /// Obey the directives? If not, they are the comments they look like.
    pub burst_buffer: bool,
    /// Keep the allocation at the end, whatever it holds.
    pub keep: bool,
    /// The job is ended after this time.
    pub time_limit: Option<Duration>,
    /// Where the script's standard output goes.
    pub output: Output<'a>,
    /// Launchers that our own program stands in for where there is no scheduler.
    pub shims: &'a [&'a str],
    /// Shared state of the emulated file system, which must not outlive us.
    pub emulation: Option<&'a Path>,
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
    /// Why something was decided as it was.
    fn explain(&self, text: &str);
}

/// Brings a job from its script to its end.
///
/// # Errors
/// If the job was not started; nothing is left behind then. What goes wrong later is in the
/// [`Outcome`].
pub fn run(order: &Order, caught: Caught, watcher: &dyn Watcher) -> Result<Outcome, Error> {
    let directory = JobDirectory::make()?;
    let record = Record::new(directory.id(), &order.script.path, directory.path());
    let recorded = record.and_then(|mut record| {
        record.emulation = order.emulation.map(Path::to_path_buf);
        record.keep = order.keep;
        let recorded = record.keep()?;
        match directory.is_recorded() {
            Ok(()) => Ok(recorded),
            Err(error) => {
                recorded.remove()?;
                Err(error.into())
            }
        }
    });
    let mut recorded = match recorded {
        Ok(recorded) => recorded,
        Err(error) => {
            directory.remove()?;
            return Err(error);
        }
    };
    let mut placement = Placement::default();
    let done = Life::new(order, &directory, watcher)
        .and_then(|life| life.live(caught, &mut placement, &mut recorded));
    let kept = match &done {
        Ok(outcome) => outcome.kept.is_some(),
        Err(error) => matches!(error, Error::LostSight { kept: Some(_), .. }),
    };
    let taken_down = if kept {
        leave(directory, &mut recorded)
    } else {
        take_down(placement, directory, recorded)
    };
    if let Err(error) = taken_down {
        watcher.warning(&error.to_string());
    }
    done
}

/// Frees all that the job had. What cannot be freed stays recorded.
fn take_down(
    placement: Placement,
    directory: JobDirectory,
    recorded: Recorded,
) -> Result<(), Error> {
    let freed = placement.space.map(|space| space.allocation.free());
    if let Some(keeper) = placement.keeper {
        keeper.end();
    }
    freed.transpose()?;
    directory.remove()?;
    Ok(recorded.remove()?)
}

/// Leaves the allocation, to be found through its record.
fn leave(directory: JobDirectory, recorded: &mut Recorded) -> Result<(), Error> {
    recorded.update(|record| record.phase = Phase::Kept)?;
    Ok(directory.remove()?)
}

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

impl<'a> Life<'a> {
    fn new(
        order: &'a Order<'a>,
        directory: &'a JobDirectory,
        watcher: &'a dyn Watcher,
    ) -> Result<Self, Error> {
        let submitted_in = machine::current_directory()?;
        let works_in = order.script.works_in(&submitted_in);
        let outer_job = environment::outer_job(directory.id());
        let job_id = outer_job
            .clone()
            .unwrap_or_else(|| directory.id().to_owned());
        let request = order.request(&submitted_in, &job_id, watcher)?;
        Ok(Self {
            order,
            directory,
            watcher,
            request,
            submitted_in,
            works_in,
            job_id,
            under_scheduler: outer_job.is_some(),
        })
    }

    fn live(
        &self,
        caught: Caught,
        placement: &mut Placement,
        recorded: &mut Recorded,
    ) -> Result<Outcome, Error> {
        recorded.update(|record| record.stage_out.clone_from(&self.request.stage_out))?;
        *placement = self.place(recorded)?;
        // Inside the view now: it shows the directories that the script names.
        let is_directory = files::status(&self.works_in).is_ok_and(|s| s.kind == Kind::Directory);
        if !is_directory {
            return Err(Error::NoDirectory(self.works_in.clone()));
        }
        let keeper = placement.keeper.as_ref().map(|keeper| keeper.identity());
        let running = Running {
            life: self,
            events: caught.watch(keeper),
            space: placement.space.as_ref(),
        };
        running.live(recorded)
    }

    fn place(&self, recorded: &mut Recorded) -> Result<Placement, Error> {
        let wishes = self.order.wishes(self.under_scheduler);
        let placing = Placing {
            wishes: &wishes,
            directory: self.directory,
            watcher: self.watcher,
            asked: self.request.job.as_ref(),
            node_local: self.order.node_local_path(),
        };
        placing.place(recorded)
    }
}

impl Order<'_> {
    /// What the script asks for, as far as it is to be obeyed.
    pub(crate) fn request(
        &self,
        submitted_in: &Path,
        job_id: &str,
        watcher: &dyn Watcher,
    ) -> Result<Request, Error> {
        if !self.burst_buffer {
            return Ok(Request::default());
        }
        let mut request = self.script.request(submitted_in, job_id)?;
        for warning in &request.warnings {
            let script = self.script.path.display();
            watcher.warning(&format!("{script}: {warning}; {}", warning.hint));
        }
        if self.wants_node_local() {
            let job = request.job.get_or_insert_with(node_local);
            if !job.access.contains(&AccessMode::Private) {
                job.access.push(AccessMode::Private);
            }
        }
        Ok(request)
    }

    /// The user's wishes, as far as a scheduler's job allows them.
    pub(crate) fn wishes(&self, under_scheduler: bool) -> Wishes<'_> {
        let mut wishes = self.wishes.clone();
        if under_scheduler {
            wishes.no_view = Some("the scheduler starts a step's tasks outside of it");
        }
        wishes
    }

    /// Where the job expects the node's own storage, if it asks for it.
    pub(crate) fn node_local_path(&self) -> Option<PathBuf> {
        let path = || Path::new(NODE_LOCAL_PATH).join(machine::user_name());
        self.wants_node_local().then(path)
    }

    fn wants_node_local(&self) -> bool {
        self.burst_buffer && self.script.header.node_local
    }
}

/// The allocation of a script that asks for local storage without a directive.
fn node_local() -> JobDw {
    JobDw {
        access: Vec::new(),
        capacity_bytes: NODE_LOCAL_BYTES,
        pool: None,
        place: Place {
            origin: Origin::Script,
            line: 1,
            column: 1,
        },
    }
}
