//! The result of a job: the data for messages and `--json`.
//! The fields are the keys of the JSON object. Bytes of a path that are not UTF-8 are replaced there.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use forebay_engine::{NodesSummary, StoreUsed};

use crate::UnnamedFiles;
use forebay_deadline::DeadlineAccount;
use forebay_host::exit_codes::{STAGE_OUT_INCOMPLETE, TIME_RAN_OUT};
use forebay_onclose::{CommandSummary, Drained};
use forebay_persistent::PersistentUsed;
use forebay_record::{FailedWrite, UnsavedFiles};
use forebay_request_server::Requested;
use forebay_staging::StagingSummary;

/// The result of one job.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Outcome {
    /// The scheduler's job id, else Forebay's.
    pub job_id: String,
    /// Forebay's id of the job.
    pub run_id: String,
    /// The path of the script, as the user gave it.
    #[serde(serialize_with = "forebay_host::files::lossy_path")]
    #[schemars(with = "PathBuf")]
    pub script: PathBuf,
    /// The allocation; none for a job without one.
    pub store: Option<StoreUsed>,
    /// The nodes of the allocation; none if it is on one node.
    pub nodes: Option<NodesSummary>,
    /// Persistent allocations that the job created, used or destroyed.
    pub persistent: Vec<PersistentUsed>,
    /// The stage-in; none if the script has none.
    pub stage_in: Option<StagingSummary>,
    /// Exit status of the script as a shell shows it.
    pub job_status: i32,
    /// Run time of the script in seconds, without staging.
    pub job_s: f64,
    /// Time to sync what the job wrote, in seconds, where it ran without a burst buffer: it is safe then, before its
    /// stage-out.
    pub sync_s: Option<f64>,
    /// Commands on close; none if there were to be none, or what became of them is not known.
    pub on_close: Option<CommandSummary>,
    /// The drain while the job ran; none without drains.
    pub drain: Option<Drained>,
    /// The stage-out; none if the script has none.
    pub stage_out: Option<StagingSummary>,
    /// Staging requests of the job's programs; none without requests.
    pub requested: Option<Requested>,
    /// Number of leftover processes, which Forebay ended.
    pub leftover_processes: usize,
    /// Processes that could not be ended. The stage-out may miss what they write later.
    pub unended_processes: Vec<i32>,
    /// True if the stage-out failed, or is or may be incomplete.
    pub undelivered: bool,
    /// The kept allocation, because of `undelivered` or `--keep`.
    #[serde(serialize_with = "forebay_host::files::lossy_option")]
    #[schemars(with = "Option<PathBuf>")]
    pub kept: Option<PathBuf>,
    /// Files that exist only in the allocation; none if everything is completed.
    pub not_safe: Option<UnsavedFiles>,
    /// What was done about the scheduler's deadline; none without one.
    pub deadline: Option<DeadlineAccount>,
    /// The directory of its I/O profile; none without one.
    #[serde(serialize_with = "forebay_host::files::lossy_option")]
    #[schemars(with = "Option<PathBuf>")]
    pub profile: Option<PathBuf>,
    /// The first failed write of each file of the job, for lack of space or quota, or by an I/O error; oldest first.
    pub failed_writes: Vec<FailedWrite>,
    /// When the file system of the store was first seen to be full, in milliseconds since 1970.
    pub store_full_unix_ms: Option<u64>,
    /// Exit code of `forebay run`.
    pub exit_code: i32,
    /// What the job wrote and no `stage_out` line names; none if that is not known.
    pub unnamed: Option<UnnamedFiles>,
}

/// The exit code of `forebay run`: the job's status. If data were kept because of an incomplete
/// stage-out and the job's status is 0 or time ran out, a code of Forebay; also if a staged file is `incomplete`.
pub(crate) fn exit_code(job_status: i32, kept: bool, time_ran_out: bool, incomplete: bool) -> i32 {
    match (kept, time_ran_out, job_status) {
        (true, true, _) => TIME_RAN_OUT,
        (_, _, 0) if kept || incomplete => STAGE_OUT_INCOMPLETE,
        _ => job_status,
    }
}
