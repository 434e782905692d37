//! A series: many runs in one allocation, which is staged in once (docs/tune.md).
//!
//! Nothing in the allocation is wanted after it. So the record of the job stays where it is before a
//! script begins: whoever cleans up after a killed series removes the allocation and stages nothing out.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use forebay_engine::StoreUsed;
use forebay_host::process::Bell;
use forebay_profile::Recording;
use serde::Serialize;

use crate::execution::{Execution, Program};
use crate::fresh::Contents;
use crate::life::check_directory;
use crate::order::Output;
use crate::recording::{self, begin_of_run};
use crate::running::Running;
use crate::{Error, JobScript, Outcome};
use forebay_record::Recorded;
use forebay_staging::Staged;

/// Who says what a series is to run.
pub trait Requester {
    /// Called once, when threads may be started: from now on the bell is to be rung for each request,
    /// and hung up when there will be none.
    fn listen(&mut self, bell: Bell);
    /// The allocation is there.
    fn ready(&mut self, ready: &Ready);
    /// A request that has come. Asked after each ring.
    fn next(&mut self) -> Option<Run>;
    /// What became of it.
    fn answer(&mut self, run: &Run, done: Result<&Ran, &Error>);
}

/// What a series has.
#[derive(Debug, Serialize)]
pub struct Ready {
    /// Is there an allocation?
    pub burst_buffer: bool,
    /// Variables that name namespaces.
    pub variables: BTreeMap<String, String>,
    /// Prefix of a path of the view for the machine's other processes; empty if there is no view.
    pub root: String,
    /// Where the allocation lies.
    pub store: Option<StoreUsed>,
    /// What was staged in.
    pub stage_in: Option<Staged>,
}

/// What is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// The script at this path.
    Script(PathBuf),
    /// A program and its arguments.
    Command(Vec<String>),
}

/// One run that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Repeated in the answer.
    pub number: u64,
    /// Script or command.
    pub what: What,
    /// First make the allocation what it was after stage-in.
    pub fresh: bool,
    /// Where it runs; none: where the series was started.
    pub directory: Option<PathBuf>,
    /// Variables on top of the job's.
    pub environment: BTreeMap<String, String>,
    /// Absolute path of the directory of its record.
    pub record: Option<PathBuf>,
    /// Record each call too.
    pub trace: bool,
    /// File for both of its streams.
    pub output: Option<PathBuf>,
    /// It is ended after this time; none: after that of the order.
    pub time_limit: Option<Duration>,
}

/// What became of a run.
#[derive(Debug, Clone, Serialize)]
pub struct Ran {
    /// Exit status as a shell shows it.
    pub job_status: i32,
    /// Run time in seconds.
    pub job_s: f64,
    /// It was ended at its time limit.
    pub over_time_limit: bool,
    /// The signal that ended its first process.
    pub ended_by_signal: Option<i32>,
    /// Processes it had left behind, which were ended.
    pub leftover_processes: usize,
    /// Processes that could not be ended.
    pub unended_processes: Vec<i32>,
}

impl Running<'_> {
    /// Stages in, and runs what is asked for until nobody asks any more. Returns the exit code.
    pub(crate) fn serve(
        &self,
        recorded: &mut Recorded,
        requester: &mut dyn Requester,
    ) -> Result<i32, Error> {
        requester.listen(self.events.bell());
        match self.serve_until_stopped(recorded, requester) {
            Ok(()) | Err(Error::Stopped) => {
                let signal = self.events.stops().signal();
                Ok(signal.map_or(0, |signal| 128 + signal))
            }
            Err(error) => Err(error),
        }
    }

    fn serve_until_stopped(
        &self,
        recorded: &mut Recorded,
        requester: &mut dyn Requester,
    ) -> Result<(), Error> {
        let stage_in = self.stage_in(|_| true)?;
        let root = self.space.map(|space| space.allocation.root());
        let mut contents = root.map(Contents::of).transpose()?;
        if self.events.stops().count() > 0 {
            return Err(Error::Stopped);
        }
        requester.ready(&self.ready(stage_in));
        while let Some(run) = self.events.wait_until(|| requester.next()) {
            let done = self.run(&run, contents.as_mut(), recorded);
            requester.answer(&run, done.as_ref());
            // Nobody can tell any more what still runs.
            if let Err(error @ Error::LostSight { .. }) = done {
                return Err(error);
            }
        }
        Ok(())
    }

    fn ready(&self, stage_in: Option<Staged>) -> Ready {
        let text = |value: std::ffi::OsString| value.to_string_lossy().into_owned();
        let variables = self.variables().into_iter();
        let root = |pid| format!("/proc/{pid}/root");
        Ready {
            burst_buffer: self.space.is_some(),
            variables: variables.map(|(name, value)| (name, text(value))).collect(),
            root: self
                .keeper
                .map_or_else(String::new, |keeper| root(keeper.pid)),
            store: self.space.map(|space| space.used.clone()),
            stage_in,
        }
    }

    fn run(
        &self,
        run: &Run,
        contents: Option<&mut Contents>,
        recorded: &mut Recorded,
    ) -> Result<Ran, Error> {
        let life = self.life;
        let script = match &run.what {
            What::Script(path) => Some(JobScript::read(path)?),
            What::Command(_) => None,
        };
        let script = script.as_ref().unwrap_or(life.order.script);
        let submitted_in = run.directory.as_deref().unwrap_or(&life.submitted_in);
        let named = run.directory.clone();
        let works_in = named.unwrap_or_else(|| script.working_directory(submitted_in));
        check_directory(&works_in)?;
        let stage_in = match contents.filter(|_| run.fresh) {
            Some(contents) => self.make_fresh(contents)?,
            None => None,
        };
        let execution = Execution {
            begins: None,
            program: match &run.what {
                What::Script(_) => Program::Script(script),
                What::Command(words) => Program::Command(words),
            },
            submitted_in,
            works_in: &works_in,
            environment: &run.environment,
            output: run.output.as_deref().map_or(Output::Error, Output::Both),
            time_limit: run.time_limit.or(life.order.time_limit),
            guard: None,
            recording: None,
        };
        // Killed from here on, the record of the run is completed by whoever cleans up.
        recorded.update(|record| record.profile.clone_from(&run.record))?;
        let done = self.recorded(run, &execution, stage_in);
        recorded.update(|record| record.profile = None)?;
        done
    }

    /// Carries out a run with the record that is asked for.
    fn recorded(
        &self,
        run: &Run,
        execution: &Execution,
        stage_in: Option<Staged>,
    ) -> Result<Ran, Error> {
        let life = self.life;
        let (Some(directory), Some(recording)) = (&run.record, &life.order.recording) else {
            return Ok(self.carry_out(execution, stage_in)?.0);
        };
        let recording = Recording {
            trace: run.trace,
            ..recording.clone()
        };
        let id = format!("{}.{}", life.directory.id(), run.number);
        let (script, works_in) = (execution.script(life), execution.works_in);
        let profile = begin_of_run(directory, run, script, works_in, &id, &recording)?;
        let execution = Execution {
            recording: Some((&profile, &recording)),
            ..*execution
        };
        let done = self.carry_out(&execution, stage_in);
        let outcome = done.as_ref().map(|(_, outcome)| outcome);
        recording::end(profile, &recording, outcome, life.watcher);
        Ok(done?.0)
    }

    fn carry_out(
        &self,
        execution: &Execution,
        stage_in: Option<Staged>,
    ) -> Result<(Ran, Outcome), Error> {
        let executed = self.execute(execution)?;
        if let Some(space) = self.space {
            self.check_capacity(space);
        }
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

    /// Returns what had to be staged in again.
    fn make_fresh(&self, contents: &mut Contents) -> Result<Option<Staged>, Error> {
        let missing = contents.strip()?;
        let staged = if missing.is_empty() {
            None
        } else {
            self.stage_in(|target| missing.contains(target))?
        };
        contents.settle(&missing)?;
        Ok(staged)
    }
}
