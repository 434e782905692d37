//! What became of a job: the data behind messages and `--json`.

use std::path::PathBuf;

use forebay_mover::Moved;
use serde::Serialize;

use crate::STAGE_OUT_INCOMPLETE;

/// The account of one job.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// Id of the job.
    pub job_id: String,
    /// The script as named.
    pub script: PathBuf,
    /// The allocation; none for a job without one.
    pub store: Option<StoreUsed>,
    /// Stage-in; none if the script asks for none.
    pub stage_in: Option<Staged>,
    /// Exit status of the script as a shell shows it.
    pub job_status: i32,
    /// Run time of the script in seconds, staging not included.
    pub job_s: f64,
    /// Stage-out; none if the script asks for none.
    pub stage_out: Option<Staged>,
    /// Processes the job had left behind, which were ended.
    pub leftover_processes: usize,
    /// The allocation that was kept because data in it did not arrive.
    pub kept: Option<PathBuf>,
    /// Exit code of `forebay run`.
    pub exit_code: i32,
}

/// Where the allocation lay.
#[derive(Debug, Clone, Serialize)]
pub struct StoreUsed {
    /// The store's directory.
    pub directory: PathBuf,
    /// Held in memory?
    pub in_memory: bool,
    /// Capacity given.
    pub capacity_bytes: u64,
    /// Capacity asked for.
    pub asked_bytes: u64,
}

/// One staging.
#[derive(Debug, Clone, Serialize)]
pub struct Staged {
    /// Files and links that arrived.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How long it took.
    pub seconds: f64,
    /// What did not arrive: path and reason.
    pub failures: Vec<(PathBuf, String)>,
}

impl Staged {
    pub(crate) fn new(moved: &Moved, seconds: f64) -> Self {
        let failures = moved.failures.iter();
        Self {
            files: moved.files,
            bytes: moved.bytes,
            seconds,
            failures: failures
                .map(|f| (f.path.clone(), f.reason.clone()))
                .collect(),
        }
    }
}

/// The job's own status; if that is 0 and data did not arrive, ours.
pub(crate) fn exit_code(job_status: i32, stage_out: &Staged) -> i32 {
    if job_status == 0 && !stage_out.failures.is_empty() {
        STAGE_OUT_INCOMPLETE
    } else {
        job_status
    }
}
