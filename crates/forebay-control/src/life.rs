//! The steps of a job, in order, and what is undone when one of them fails.

use std::path::Path;

use forebay_host::files::{self, Kind};
use forebay_host::machine;
use forebay_host::namespace::Keeper;
use forebay_host::process::Caught;

use crate::job_directory::JobDirectory;
use crate::order::{Order, Watcher};
use crate::placement::{Placement, Placing};
use crate::profile::{Profile, record_refusal};
use crate::record::{Phase, Record, Recorded};
use crate::running::{Life, Running};
use crate::series::Requester;
use crate::{Error, Outcome, environment};

/// Brings a job from its script to its end.
///
/// # Errors
/// If the job was not started; nothing is left behind then. What goes wrong later is in the
/// [`Outcome`].
pub fn run(order: &Order, caught: Caught, watcher: &dyn Watcher) -> Result<Outcome, Error> {
    let mut held = match Held::written_down(order, order.recording.is_some()) {
        Ok(held) => held,
        Err(error) => {
            record_refusal(order, &error, watcher);
            return Err(error);
        }
    };
    let profile = Profile::of_job(order, &held.recorded, watcher);
    let done = held.live(order, caught, watcher, |running, recorded| {
        running.live(profile.as_ref(), recorded)
    });
    if let (Some(profile), Some(recording)) = (profile, &order.recording) {
        profile.end(recording, done.as_ref(), watcher);
    }
    let kept = match &done {
        Ok(outcome) => outcome.kept.is_some(),
        Err(error) => matches!(error, Error::LostSight { kept: Some(_), .. }),
    };
    held.let_go(kept, watcher);
    done
}

/// Makes the allocation of a job and stages in, then runs what the requester says, until he is gone
/// or a signal comes. Nothing is staged out and nothing stays. Returns the exit code.
///
/// # Errors
/// If it could not begin.
pub fn series(
    order: &Order,
    caught: Caught,
    watcher: &dyn Watcher,
    requester: &mut dyn Requester,
) -> Result<i32, Error> {
    let mut held = Held::written_down(order, false)?;
    let done = held.live(order, caught, watcher, |running, recorded| {
        running.serve(recorded, requester)
    });
    held.let_go(false, watcher);
    done
}

/// All that a job has on the machine, and the record of it.
struct Held {
    directory: JobDirectory,
    recorded: Recorded,
    placement: Placement,
}

impl Held {
    /// The job's own directory, and its record.
    fn written_down(order: &Order, is_profiled: bool) -> Result<Self, Error> {
        let directory = JobDirectory::make()?;
        let record = Record::new(directory.id(), &order.script.path, directory.path());
        let recorded = record.and_then(|mut record| {
            record.emulation = order.emulation.map(Path::to_path_buf);
            record.keep = order.keep;
            let recorded = record.keep(is_profiled)?;
            match directory.is_recorded() {
                Ok(()) => Ok(recorded),
                Err(error) => {
                    recorded.remove()?;
                    Err(error.into())
                }
            }
        });
        match recorded {
            Ok(recorded) => Ok(Self {
                directory,
                recorded,
                placement: Placement::default(),
            }),
            Err(error) => {
                directory.remove()?;
                Err(error)
            }
        }
    }

    /// Makes the allocation, and lets the job live in it.
    fn live<T>(
        &mut self,
        order: &Order,
        caught: Caught,
        watcher: &dyn Watcher,
        job: impl FnOnce(&Running, &mut Recorded) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let life = Life::new(order, &self.directory, watcher)?;
        self.placement = life.place(&mut self.recorded)?;
        // Inside the view now: it shows the directories that the script names.
        check_directory(&life.works_in)?;
        let keeper = self.placement.keeper.as_ref().map(Keeper::identity);
        let running = Running {
            life: &life,
            events: caught.watch(keeper),
            keeper,
            space: self.placement.space.as_ref(),
        };
        job(&running, &mut self.recorded)
    }

    /// Leaves the allocation to be found through its record, or frees all that the job had.
    fn let_go(self, kept: bool, watcher: &dyn Watcher) {
        let gone = if kept { self.leave() } else { self.take_down() };
        if let Err(error) = gone {
            watcher.warning(&error.to_string());
        }
    }

    fn leave(mut self) -> Result<(), Error> {
        self.recorded.update(|record| record.phase = Phase::Kept)?;
        Ok(self.directory.remove()?)
    }

    /// What cannot be freed stays recorded.
    fn take_down(self) -> Result<(), Error> {
        let freed = self.placement.space.map(|space| space.allocation.free());
        if let Some(keeper) = self.placement.keeper {
            keeper.end();
        }
        freed.transpose()?;
        self.directory.remove()?;
        self.recorded.remove()
    }
}

/// Can a job work there?
pub(crate) fn check_directory(directory: &Path) -> Result<(), Error> {
    let is_directory = files::status(directory).is_ok_and(|s| s.kind == Kind::Directory);
    if is_directory {
        return Ok(());
    }
    Err(Error::NoDirectory(directory.to_owned()))
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
