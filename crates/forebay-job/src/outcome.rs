//! What became of a job: the data behind messages and `--json`.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use forebay_engine::StoreUsed;

use crate::{STAGE_OUT_INCOMPLETE, TIME_RAN_OUT};
use forebay_deadline::DeadlineAccount;
use forebay_onclose::{CommandSummary, Drained};
use forebay_persistent::PersistentUsed;
use forebay_record::UnsavedFiles;
use forebay_request_server::Requested;
use forebay_staging::Staged;

/// The account of one job.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// Id of the job: the scheduler's, where there is one.
    pub job_id: String,
    /// Our own id of it.
    pub run_id: String,
    /// The script as named.
    #[serde(serialize_with = "lossy")]
    pub script: PathBuf,
    /// The allocation; none for a job without one.
    pub store: Option<StoreUsed>,
    /// Persistent allocations that the job made, used or destroyed.
    pub persistent: Vec<PersistentUsed>,
    /// Stage-in; none if the script asks for none.
    pub stage_in: Option<Staged>,
    /// Exit status of the script as a shell shows it.
    pub job_status: i32,
    /// Run time of the script in seconds, staging not included.
    pub job_s: f64,
    /// Time to sync what the job wrote, in seconds, where it ran without a burst buffer: it is safe then, before its
    /// stage-out.
    pub sync_s: Option<f64>,
    /// Commands on close; none if there were to be none, or what became of them is not known.
    pub on_close: Option<CommandSummary>,
    /// What was drained while the job ran; none if nothing was to be.
    pub drain: Option<Drained>,
    /// Stage-out; none if the script asks for none.
    pub stage_out: Option<Staged>,
    /// What the job's programs asked to be staged; none if they had nothing to ask for.
    pub requested: Option<Requested>,
    /// Processes the job had left behind, which were ended.
    pub leftover_processes: usize,
    /// Processes that could not be ended: stage-out may have missed what they wrote later.
    pub unended_processes: Vec<i32>,
    /// Not all that was to be staged out arrived, or may have.
    pub undelivered: bool,
    /// The allocation that was kept, because of that or because the user wants it.
    #[serde(serialize_with = "lossy_option")]
    pub kept: Option<PathBuf>,
    /// What is still in the allocation only; none if everything arrived.
    pub not_safe: Option<UnsavedFiles>,
    /// What was done about the end that a scheduler sets; none if there is none.
    pub deadline: Option<DeadlineAccount>,
    /// The record of its I/O; none if there is none.
    #[serde(serialize_with = "lossy_option")]
    pub profile: Option<PathBuf>,
    /// Exit code of `forebay run`.
    pub exit_code: i32,
}

/// JSON is text: what is not UTF-8 in a path is replaced.
fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

#[allow(clippy::ref_option)] // serde hands the field over so
fn lossy_option<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    let text = path.as_ref().map(|path| path.to_string_lossy().into_owned());
    text.serialize(serializer)
}

/// The job's own status; if data were kept because they did not arrive, ours where the job's is 0 or the
/// time ran out.
pub(crate) fn exit_code(job_status: i32, kept: bool, time_ran_out: bool) -> i32 {
    match (kept, time_ran_out, job_status) {
        (true, true, _) => TIME_RAN_OUT,
        (true, false, 0) => STAGE_OUT_INCOMPLETE,
        _ => job_status,
    }
}
