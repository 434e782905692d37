//! Reports on recorded jobs, one by one and by the node that holds their data.
//! Never changes a job or its data. May write a copy of a journal to the job's directory, and removes it.

use std::collections::BTreeMap;

use forebay_engine::{NodesSummary, NodesUse};
use forebay_mover::{Failure, Shortage};
use forebay_record::{Phase, RecordFile, Records};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Error;
use crate::state::{JobState, state as state_of};

/// Number of failures in a report.
const FAILURES_SHOWN: usize = 5;

/// A recorded job and its current state.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobReport {
    /// The job's id.
    pub job_id: String,
    /// The path of the script.
    pub script: String,
    /// The host of its `forebay run`.
    pub host: String,
    /// Start time, in seconds since 1970.
    pub began_unix_s: u64,
    /// One of running, kept, left, lost, unreachable and elsewhere.
    pub state: &'static str,
    /// The last phase of the job.
    pub phase: Phase,
    /// Processes of the job that outlived its `forebay run`.
    pub processes: Vec<i32>,
    /// True if its memory ends with these processes, since the process that was to keep it was killed;
    /// `forebay clean` keeps it.
    pub ends_with_processes: bool,
    /// True if some of its data are still to be staged out.
    pub undrained: bool,
    /// Pending and failed files of a stage-out; none if no stage-out began.
    pub missing_files: Option<u64>,
    /// Their bytes.
    pub missing_bytes: Option<u64>,
    /// The first failures, with path and reason.
    pub failures: Vec<(String, String)>,
    /// File systems without enough space: bytes needed and bytes free.
    pub shortages: Vec<Shortage>,
    /// Number of files that exist only in the allocation; none if there is no list.
    #[serde(rename = "not_safe_files")]
    pub unsaved_count: Option<u64>,
    /// The path of the list of these files.
    #[serde(rename = "not_safe_list")]
    pub unsaved_list: Option<String>,
    /// Bytes used in the allocation.
    pub used_bytes: Option<u64>,
    /// Capacity of the allocation in bytes.
    pub capacity_bytes: Option<u64>,
    /// The nodes of the allocation and the engine over them; none if it is on one node.
    pub nodes: Option<NodesSummary>,
    /// Where the data can be reached.
    pub data: Option<String>,
    /// Why the journal cannot be read.
    #[serde(skip)]
    pub journal_error: Option<forebay_record::Error>,
}

/// Reports on one job of this machine. Changes nothing.
///
/// # Errors
/// If the job's processes cannot be listed.
pub fn report(recorded: &RecordFile) -> Result<JobReport, Error> {
    let record = &recorded.record;
    let (state, processes) = match state_of(recorded)? {
        JobState::Running => ("running", Vec::new()),
        JobState::Orphaned { processes } if record.phase == Phase::Kept && processes.is_empty() => {
            ("kept", processes)
        }
        JobState::Orphaned { processes } => ("left", processes),
        JobState::AllocationLost => ("lost", Vec::new()),
        JobState::Unreachable => ("unreachable", Vec::new()),
        JobState::OtherHost => ("elsewhere", Vec::new()),
    };
    let unsaved_count = recorded.unsaved_count();
    let here = state != "lost" && state != "elsewhere";
    let begun = if here { recorded.staged_out(FAILURES_SHOWN) } else { Ok(None) };
    let (begun, journal_error) = match begun {
        Ok(begun) => (begun, None),
        Err(error) => (None, Some(error)),
    };
    let missing = begun.as_ref().map(|(account, _)| account.counts.missing());
    let (shortages, failures) =
        begun.map_or_else(Default::default, |(account, failures)| (account.shortages, failures));
    let path = |failure: &Failure| failure.path.to_string_lossy().into_owned();
    Ok(JobReport {
        job_id: record.id.clone(),
        script: record.script.clone(),
        host: record.runner.host.clone(),
        began_unix_s: record.began_unix_s,
        state,
        phase: record.phase,
        ends_with_processes: !processes.is_empty()
            && record.place.as_ref().is_some_and(|place| place.mounted)
            && record.view_holder()?.is_some_and(|holder| record.keeper != Some(holder)),
        processes,
        undrained: state != "lost" && recorded.needs_stage_out(),
        missing_files: missing.map(|missing| missing.files),
        missing_bytes: missing.map(|missing| missing.bytes),
        failures: failures.into_iter().map(|failure| (path(&failure), failure.reason)).collect(),
        shortages,
        journal_error,
        unsaved_count,
        unsaved_list: unsaved_count.map(|_| recorded.unsaved_list().to_string_lossy().into_owned()),
        used_bytes: recorded.used_bytes().filter(|_| here && state != "unreachable"),
        capacity_bytes: record.place.as_ref().map(|place| place.capacity_bytes),
        nodes: record.nodes.as_ref().map(NodesUse::summary),
        data: recorded.data().filter(|_| here).map(|path| path.to_string_lossy().into_owned()),
    })
}

/// Ids of jobs, by the node that holds their data.
pub type JobsByNode = BTreeMap<String, Vec<String>>;

/// Jobs whose data are still to be staged out.
#[derive(Debug, Default)]
pub struct Undrained {
    /// Jobs with data that are to be staged out.
    pub held: JobsByNode,
    /// Jobs whose programs may have requested a stage-out; only their node can read the requests.
    pub unknown: JobsByNode,
}

/// The jobs with data to be staged out on these nodes, or on all nodes if none is named.
///
/// # Errors
/// If a job's processes cannot be listed.
pub fn undrained_by_node(records: &Records, nodes: &[String]) -> Result<Undrained, Error> {
    let mut undrained = Undrained::default();
    for recorded in &records.found {
        let record = &recorded.record;
        let host = &record.runner.host;
        if !nodes.is_empty() && !nodes.contains(host) {
            continue;
        }
        let state = state_of(recorded)?;
        let may_hold = matches!(state, JobState::Orphaned { .. } | JobState::OtherHost);
        let jobs = if may_hold && recorded.needs_stage_out() && !recorded.needs_user_decision() {
            &mut undrained.held
        } else if state == JobState::OtherHost && recorded.may_have_requests() {
            &mut undrained.unknown
        } else {
            continue;
        };
        jobs.entry(host.clone()).or_default().push(record.id.clone());
    }
    Ok(undrained)
}
