//! A series: many runs in one allocation, which is staged in once (docs/explanation/tuner.md).
//!
//! A series stages out nothing. The record stays in the phase before the script, so a clean of a
//! killed series removes the allocation without a stage-out.

mod protocol;

use forebay_host::{exit_codes, files};
use forebay_profile::Recording;
use forebay_record::RecordFile;
use forebay_staging::StagingSummary;

use crate::context::{ActiveJob, check_directory};
use crate::error::Error;
use crate::execution::{Execution, Program};
use crate::job_spec::Output;
use crate::node::{Node, Scope};
use crate::outcome::Outcome;
use crate::recording::{self, begin_of_run};
use crate::snapshot::Snapshot;
use crate::variables::check_variables;
use forebay_scheduler::JobScript;

pub use protocol::{Ran, Ready, Run, RunSource, RunTarget};

impl ActiveJob<'_> {
    /// Stages in and carries out runs until the requester ends. Returns the exit code.
    pub(crate) fn serve(
        &self,
        recorded: &mut RecordFile,
        run_source: &mut dyn RunSource,
    ) -> Result<i32, Error> {
        run_source.listen(self.events.sender())?;
        match self.serve_until_stopped(recorded, run_source) {
            Ok(()) | Err(Error::Stopped) => {
                let signal = self.events.stops().signal();
                Ok(signal.map_or(0, exit_codes::of_signal))
            }
            Err(error) => Err(error),
        }
    }

    fn serve_until_stopped(
        &self,
        recorded: &mut RecordFile,
        run_source: &mut dyn RunSource,
    ) -> Result<(), Error> {
        let stage_in = self.node(None).stage_in(Scope::Everything)?;
        let root = self.job_allocation.map(|allocated| allocated.allocation.root());
        let mut snapshot = root.map(Snapshot::of).transpose()?;
        if self.events.stops().count() > 0 {
            return Err(Error::Stopped);
        }
        run_source.ready(&self.ready(stage_in));
        while let Some(run) = self.events.wait_until(|| run_source.next()) {
            let done = self.run_one(&run, snapshot.as_mut(), recorded);
            run_source.answer(&run, done.as_ref());
            // It is unknown which processes still run.
            if let Err(error @ Error::ProcessesUnknown { .. }) = done {
                return Err(error);
            }
        }
        Ok(())
    }

    fn ready(&self, stage_in: Option<StagingSummary>) -> Ready {
        let variables = self.variables().into_iter();
        let root = |pid| format!("/proc/{pid}/root");
        Ready {
            burst_buffer: self.job_allocation.is_some(),
            variables: variables.map(|(name, value)| (name, files::lossy(value))).collect(),
            root: self.keeper.map_or_else(String::new, |keeper| root(keeper.pid)),
            store: self.job_allocation.map(|allocated| allocated.used.clone()),
            stage_in,
        }
    }

    fn run_one(
        &self,
        run: &Run,
        snapshot: Option<&mut Snapshot>,
        recorded: &mut RecordFile,
    ) -> Result<Ran, Error> {
        let context = self.context;
        let script = match &run.what {
            RunTarget::Script(path) => Some(JobScript::read(path)?),
            RunTarget::Command(_) => None,
        };
        if let Some(script) = &script {
            check_variables(&script.path, &script.text, &context.request)?;
        }
        let script = script.as_ref().unwrap_or(context.spec.script);
        let submit_directory = run.directory.as_deref().unwrap_or(&context.submit_directory);
        let named = run.directory.clone();
        let working_directory = named.unwrap_or_else(|| script.working_directory(submit_directory));
        check_directory(&working_directory)?;
        let stage_in = match snapshot.filter(|_| run.fresh) {
            Some(snapshot) => self.restore_snapshot(snapshot)?,
            None => None,
        };
        let execution = Execution {
            start_record: None,
            program: match &run.what {
                RunTarget::Script(_) => Program::Script(script),
                RunTarget::Command(words) => Program::Command(words),
            },
            submit_directory,
            working_directory: &working_directory,
            environment: &run.environment,
            output: run.output.as_deref().map_or(Output::Error, Output::Both),
            time_limit: run.time_limit.or(context.spec.time_limit),
            guard: None,
            recording: None,
        };
        // After a kill from here on, a clean completes the profile of the run.
        recorded.update(|record| record.profile.clone_from(&run.record))?;
        let done = self.recorded(run, &execution, stage_in);
        recorded.update(|record| record.profile = None)?;
        done
    }

    /// Carries out a run with the requested profile.
    fn recorded(
        &self,
        run: &Run,
        execution: &Execution,
        stage_in: Option<StagingSummary>,
    ) -> Result<Ran, Error> {
        let context = self.context;
        let (Some(directory), Some(recording)) = (&run.record, &context.spec.recording) else {
            return Ok(self.carry_out(execution, stage_in)?.0);
        };
        let recording = Recording { trace: run.trace, ..recording.clone() };
        let id = format!("{}.{}", context.directory.id(), run.number);
        let (script, working_directory) = (execution.script(context), execution.working_directory);
        let profile = begin_of_run(directory, run, script, working_directory, &id, &recording)?;
        let execution = Execution { recording: Some((&profile, &recording)), ..*execution };
        let done = self.carry_out(&execution, stage_in);
        let outcome = done.as_ref().map(|(_, outcome)| outcome);
        recording::end(profile, &recording, outcome, context.reporter);
        Ok(done?.0)
    }

    fn carry_out(
        &self,
        execution: &Execution,
        stage_in: Option<StagingSummary>,
    ) -> Result<(Ran, Outcome), Error> {
        let executed = self.execute(execution)?;
        self.check_capacity(&self.node(None));
        let (over_time_limit, ended_by_signal) = (executed.over_time_limit, executed.signal);
        let outcome = self.outcome(execution, executed, stage_in);
        let ran = Ran {
            job_status: outcome.job_status,
            job_s: outcome.job_s,
            over_time_limit,
            ended_by_signal,
            leftover_processes: outcome.leftover_processes,
            unended_processes: outcome.unended_processes.clone(),
        };
        Ok((ran, outcome))
    }

    /// Restores the snapshot. Returns the repeated stage-in.
    fn restore_snapshot(&self, snapshot: &mut Snapshot) -> Result<Option<StagingSummary>, Error> {
        let missing = snapshot.revert()?;
        let staged = if missing.is_empty() {
            None
        } else {
            self.node(None).stage_in(Scope::Targets(&missing))?
        };
        snapshot.update(&missing)?;
        Ok(staged)
    }
}
