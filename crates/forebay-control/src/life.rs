//! The steps of a job, in order, and what is undone when one of them fails.

use std::path::Path;

use forebay_host::files::{self, Kind};
use forebay_host::machine;
use forebay_host::process::Caught;

use crate::job_directory::JobDirectory;
use crate::order::{Order, Watcher};
use crate::placement::{Placement, Placing};
use crate::profile::{Profile, record_refusal};
use crate::record::{Phase, Record, Recorded};
use crate::running::{Life, Running};
use crate::{Error, Outcome, environment};

/// Brings a job from its script to its end.
///
/// # Errors
/// If the job was not started; nothing is left behind then. What goes wrong later is in the
/// [`Outcome`].
pub fn run(order: &Order, caught: Caught, watcher: &dyn Watcher) -> Result<Outcome, Error> {
    let (directory, mut recorded) = match written_down(order) {
        Ok(both) => both,
        Err(error) => {
            record_refusal(order, &error, watcher);
            return Err(error);
        }
    };
    let profile = Profile::of_job(order, &recorded, watcher);
    let mut placement = Placement::default();
    let done = Life::new(order, &directory, profile.as_ref(), watcher)
        .and_then(|life| life.live(caught, &mut placement, &mut recorded));
    if let (Some(profile), Some(recording)) = (profile, &order.recording) {
        profile.end(recording, done.as_ref(), watcher);
    }
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

/// The job's own directory, and its record.
fn written_down(order: &Order) -> Result<(JobDirectory, Recorded), Error> {
    let directory = JobDirectory::make()?;
    let record = Record::new(directory.id(), &order.script.path, directory.path());
    let recorded = record.and_then(|mut record| {
        record.emulation = order.emulation.map(Path::to_path_buf);
        record.keep = order.keep;
        let recorded = record.keep(order.recording.is_some())?;
        match directory.is_recorded() {
            Ok(()) => Ok(recorded),
            Err(error) => {
                recorded.remove()?;
                Err(error.into())
            }
        }
    });
    match recorded {
        Ok(recorded) => Ok((directory, recorded)),
        Err(error) => {
            directory.remove()?;
            Err(error)
        }
    }
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

impl<'a> Life<'a> {
    fn new(
        order: &'a Order<'a>,
        directory: &'a JobDirectory,
        profile: Option<&'a Profile>,
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
            profile,
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
