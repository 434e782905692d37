//! What a series and its requester say to each other.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use forebay_engine::StoreUsed;
use forebay_host::process::EventSender;
use forebay_staging::Staged;
use serde::Serialize;

use crate::error::Error;

/// Who says what a series is to run.
pub trait RunSource {
    /// Called once, when threads may be started: from now on the bell is to be rung for each request,
    /// and hung up when there will be none.
    fn listen(&mut self, bell: EventSender);
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
    /// The store of the allocation.
    pub store: Option<StoreUsed>,
    /// What was staged in.
    pub stage_in: Option<Staged>,
}

/// What is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunTarget {
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
    pub what: RunTarget,
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
    /// Its time limit; none: that of the specification.
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
