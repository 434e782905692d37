//! Runs the steps of a job in order, and undoes them after a failure.
//! Assumes a process without threads, since it enters the view. What cannot be freed stays in the record, for
//! `forebay clean`.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::time::Duration;

use forebay_cluster::Session;
use forebay_engine::{JobAllocation, Provisioned};
use forebay_host::namespace::Keeper;
use forebay_host::process::SignalGuard;
use forebay_host::{clock, probe, system, threads};

use crate::context::{ActiveJob, JobContext, check_directory};
use crate::job_spec::{JobSpec, Reporter};
use crate::recording::{self, record_refusal};
use crate::series::RunSource;
use crate::stages::renew_keeper;
use crate::store_watch::StoreWatch;
use crate::{Error, Outcome};
use forebay_persistent::Error as PersistentError;
use forebay_persistent::JobPersistents;
use forebay_profile::prune;
use forebay_record::{JobDirectory, Phase, Record, RecordFile, WriteFailures};

/// Runs a job from its script to its end.
///
/// # Errors
/// If the job was not started; no leftovers remain. The [`Outcome`] contains later failures.
pub fn run(spec: &JobSpec, caught: SignalGuard, reporter: &dyn Reporter) -> Result<Outcome, Error> {
    let mut resources = match JobResources::create_recorded(spec, spec.recording.is_some()) {
        Ok(resources) => resources,
        Err(error) => {
            record_refusal(spec, &error, reporter);
            return Err(error);
        }
    };
    let profile = recording::begin_of_job(spec, &resources.recorded, reporter);
    let done = resources.run(spec, caught, reporter, true, |running, recorded| {
        let ran = threads::caught(|| running.run(profile.as_ref(), recorded));
        ran.unwrap_or_else(|| Err(running.after_panic()))
    });
    let record = profile.as_ref().map(|profile| profile.directory().to_owned());
    if let (Some(profile), Some(how)) = (profile, &spec.recording) {
        recording::end(profile, how, done.as_ref(), reporter);
    }
    let kept = match &done {
        Ok(outcome) => outcome.kept.is_some(),
        Err(Error::ProcessesUnknown { kept, .. } | Error::Panicked { kept }) => kept.is_some(),
        Err(_) => {
            resources.reset_to_preparing(reporter);
            false
        }
    };
    let processes = match &done {
        Ok(outcome) => Some(outcome.unended_processes.as_slice()).filter(|all| !all.is_empty()),
        Err(Error::ProcessesUnknown { .. }) => Some(&[] as &[i32]),
        Err(_) => None,
    };
    resources.release(kept, processes, reporter);
    if let Some(record) = record {
        prune(&record, reporter);
    }
    done
}

/// Creates the allocation, stages in and carries out runs until the requester ends or a signal
/// arrives. Stages out nothing and keeps nothing. Returns the exit code.
///
/// # Errors
/// If the series could not begin.
pub fn series(
    spec: &JobSpec,
    caught: SignalGuard,
    reporter: &dyn Reporter,
    run_source: &mut dyn RunSource,
) -> Result<i32, Error> {
    let mut resources = JobResources::create_recorded(spec, false)?;
    let done = resources.run(spec, caught, reporter, false, |running, recorded| {
        running.serve(recorded, run_source)
    });
    resources.release(false, None, reporter);
    done
}

/// The resources of a job on the machine, and its record.
struct JobResources {
    directory: JobDirectory,
    recorded: RecordFile,
    provisioned: Provisioned,
    /// The engine of an allocation over several nodes.
    session: Option<Session>,
    persistents: JobPersistents,
}

impl JobResources {
    /// Creates the job's directory and its record.
    fn create_recorded(spec: &JobSpec, is_profiled: bool) -> Result<Self, Error> {
        // Nodes of a job start in the same millisecond, each with its own directory for temporary files. If
        // they share the state directory, a node retries when another one has the same id.
        let mut tries = 0;
        loop {
            let resources = Self::create(spec, is_profiled)?;
            if resources.recorded.id_is_unique()? {
                return Ok(resources);
            }
            resources.free()?;
            tries += 1;
            clock::sleep(Duration::from_millis(1 + retry_jitter(tries) % 50));
        }
    }

    fn create(spec: &JobSpec, is_profiled: bool) -> Result<Self, Error> {
        let directory = JobDirectory::make()?;
        let record = Record::new(directory.id(), &spec.script.path, directory.path());
        let recorded = record.and_then(|mut record| {
            record.emulation = spec.emulation.map(Path::to_path_buf);
            record.keep = spec.keep;
            record.staging = spec.staging;
            let recorded = record.create(is_profiled)?;
            match directory.mark_recorded() {
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
                provisioned: Provisioned::default(),
                session: None,
                persistents: JobPersistents::default(),
            }),
            Err(error) => {
                directory.remove()?;
                Err(error.into())
            }
        }
    }

    /// Creates the allocation and runs `job` in it. Persistent allocations require `runs_once`.
    fn run<T>(
        &mut self,
        spec: &JobSpec,
        caught: SignalGuard,
        reporter: &dyn Reporter,
        runs_once: bool,
        job: impl FnOnce(&mut ActiveJob, &mut RecordFile) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let context = JobContext::new(spec, &self.directory, reporter)?;
        let of_persistent = &context.request;
        let touches_persistent = !(of_persistent.persistent.is_empty()
            && of_persistent.create.is_empty()
            && of_persistent.destroy.is_empty());
        if touches_persistent && !runs_once {
            return Err(PersistentError::InSeries.into());
        }
        self.persistents.prepare(&context.owner(), &mut self.recorded)?;
        let events = match spec.nodes_of(&context.request) {
            Some(nodes) => {
                let events = caught.watch(None)?;
                let (session, allocation) =
                    context.start_engine(nodes, &mut self.recorded, &events)?;
                self.session = Some(session);
                self.provisioned.allocation = Some(allocation);
                events
            }
            None => {
                self.provisioned = context.provision(&mut self.recorded)?;
                caught.watch(self.provisioned.keeper.as_ref().map(Keeper::identity))?
            }
        };
        // This process is now in the view, with the directories that the script names.
        check_directory(&context.working_directory)?;
        if runs_once {
            // Reports a missing interpreter before staging in or destroying anything.
            probe::check_exec(Path::new(&spec.script.interpreter[0]), &context.working_directory)?;
        }
        let keeper = self.provisioned.keeper.as_ref().map(Keeper::identity);
        let mut running = ActiveJob {
            context: &context,
            events,
            keeper,
            job_allocation: self.provisioned.allocation.as_ref(),
            session: self.session.as_ref(),
            persistents: &mut self.persistents,
            requests_root: self.recorded.requests_root(),
            store_watch: StoreWatch::begin(),
            write_failures: WriteFailures::of(&self.recorded.record),
        };
        job(&mut running, &mut self.recorded)
    }

    /// Resets the phase: no script has written data, so nothing is to be staged out.
    fn reset_to_preparing(&mut self, reporter: &dyn Reporter) {
        let is_prepared = |record: &mut Record| record.phase = Phase::Preparing;
        if self.recorded.record.phase != Phase::Preparing
            && let Err(error) = self.recorded.update(is_prepared)
        {
            reporter.warning(&error.to_string());
        }
    }

    /// Keeps the allocation for a later clean, or frees all resources. `processes` still run;
    /// empty: unknown which, none: all ended.
    fn release(mut self, kept: bool, processes: Option<&[i32]>, reporter: &dyn Reporter) {
        std::mem::take(&mut self.persistents).release(&mut self.recorded, reporter, processes);
        let gone = if kept { self.mark_kept(reporter) } else { self.free() };
        if let Err(error) = gone {
            reporter.warning(&error.to_string());
        }
    }

    fn mark_kept(mut self, reporter: &dyn Reporter) -> Result<(), Error> {
        renew_keeper(&mut self.recorded, reporter);
        let left = self.session.map(Session::leave).unwrap_or_default();
        left.iter().for_each(|failure| reporter.warning(failure));
        self.recorded.update(|record| record.phase = Phase::Kept)?;
        Ok(self.directory.remove()?)
    }

    /// Resources that cannot be freed stay recorded.
    fn free(self) -> Result<(), Error> {
        let own = self.provisioned.allocation.filter(|_| self.recorded.record.nodes.is_none());
        let freed = own.map(|JobAllocation { allocation, .. }| allocation.free());
        let has_session = self.session.is_some();
        let left = self.session.map(Session::remove).unwrap_or_default();
        if !left.is_empty() || (!has_session && self.recorded.record.nodes.is_some()) {
            return Err(Error::NodesLeft(left));
        }
        if let Some(keeper) = self.provisioned.keeper {
            keeper.end();
        }
        // Another one, if the first was killed.
        self.recorded.record.keeper.inspect(|keeper| keeper.kill());
        freed.transpose()?;
        self.directory.remove()?;
        Ok(self.recorded.remove()?)
    }
}

/// A number that differs between nodes and between retries with high probability.
fn retry_jitter(tries: u32) -> u64 {
    let mut hasher = DefaultHasher::new();
    (system::hostname(), system::process_id(), tries).hash(&mut hasher);
    hasher.finish()
}
