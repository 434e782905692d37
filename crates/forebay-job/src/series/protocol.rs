//! The messages between a series and its requester.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use forebay_engine::StoreUsed;
use forebay_host::process::EventSender;
use forebay_staging::StagingSummary;
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::Error;

/// The requester: it sends the runs of a series.
pub trait RunSource {
    /// Called once, when threads may be started. The requester wakes the series for each run, and
    /// disconnects when there are no more.
    ///
    /// # Errors
    /// If a thread cannot be started.
    fn listen(&mut self, events: EventSender) -> forebay_host::Result<()>;
    /// The allocation is ready.
    fn ready(&mut self, ready: &Ready);
    /// Returns a received run. The series calls it after each wake-up.
    fn next(&mut self) -> Option<Run>;
    /// Receives the result of a run.
    fn answer(&mut self, run: &Run, done: Result<&Ran, &Error>);
}

/// The resources of a series.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Ready {
    /// True if there is an allocation.
    pub burst_buffer: bool,
    /// Variables with namespace paths.
    pub variables: BTreeMap<String, String>,
    /// Prefix of paths in the view for other processes of the machine; empty if there is no view.
    pub root: String,
    /// The store of the allocation.
    pub store: Option<StoreUsed>,
    /// The result of the stage-in.
    pub stage_in: Option<StagingSummary>,
}

/// What a run executes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunTarget {
    /// The script at this path.
    Script(PathBuf),
    /// A program and its arguments.
    Command(Vec<String>),
}

/// One requested run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Repeated in the answer.
    pub number: u64,
    /// The script or command.
    pub what: RunTarget,
    /// Restore the allocation to its state after stage-in first.
    pub fresh: bool,
    /// The working directory; none: that of the series.
    pub directory: Option<PathBuf>,
    /// Variables in addition to the job's.
    pub environment: BTreeMap<String, String>,
    /// Absolute path of the profile directory.
    pub record: Option<PathBuf>,
    /// Record each call in the profile.
    pub trace: bool,
    /// File for standard output and standard error.
    pub output: Option<PathBuf>,
    /// Its time limit; none: that of the specification.
    pub time_limit: Option<Duration>,
}

/// The result of a run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Ran {
    /// Exit status as a shell shows it.
    pub job_status: i32,
    /// Run time in seconds.
    pub job_s: f64,
    /// True if the run reached its time limit.
    pub over_time_limit: bool,
    /// The signal that ended its first process.
    pub ended_by_signal: Option<i32>,
    /// Number of leftover processes, which Forebay ended.
    pub leftover_processes: usize,
    /// Processes that could not be ended.
    pub unended_processes: Vec<i32>,
}
