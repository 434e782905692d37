//! State shared by the threads that answer and those that copy: requests, counts and limits.
//! One lock guards it, which no copy and no pause holds. A request whose removal from the list fails is staged out
//! again at the end, which harms no data.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use forebay_directive::Direction;
use forebay_host::clock;
use forebay_host::socket::Channel;
use parking_lot::{Condvar, Mutex};
use schemars::JsonSchema;
use serde::Serialize;

use crate::rate_limit::RateLimit;
use crate::table::{Errno, FailedFiles, RequestTable, Task, TaskOutcome};
use crate::waiting::Awaited;
use forebay_persistent::RequestNamespace;
use forebay_record::{PendingList, StagingOptions, WriteFailures};

/// How often a pause checks whether the copy is cancelled.
const CANCEL_CHECK: Duration = Duration::from_millis(100);

/// Files staged on request of programs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Requested {
    /// Files staged in while the job ran.
    pub files_in: u64,
    /// Their bytes.
    pub bytes_in: u64,
    /// Files staged out while the job ran.
    pub files_out: u64,
    /// Their bytes.
    pub bytes_out: u64,
    /// Failures while the job ran. Stage-out at the end of the job retried those of files to stage out.
    pub failed: u64,
    /// Files and directories left to stage out at the end of the job, together with the stage_out lines.
    pub left_to_stage_out: usize,
}

/// The result of a copy.
#[derive(Debug, Default)]
pub(crate) struct CopyResult {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) failed: FailedFiles,
}

/// State guarded by one lock.
pub(crate) struct State {
    pub(crate) table: RequestTable,
    pub(crate) open: PendingList,
    /// Programs that wait, with their connections.
    pub(crate) waiting: Vec<(Channel, Awaited)>,
    pub(crate) requested: Requested,
    pub(crate) workers: usize,
    pub(crate) workers_max: usize,
    pub(crate) rate_limit: RateLimit,
    /// The error of the first update of the list that failed.
    pub(crate) list_error: Option<Errno>,
    /// The job has ended: later requests are refused.
    pub(crate) is_closed: bool,
}

pub(crate) struct Shared {
    pub(crate) state: Mutex<State>,
    /// Signals that a worker has ended.
    pub(crate) changed: Condvar,
    /// Root of the job's own striped namespace, with links resolved.
    pub(crate) root: Option<PathBuf>,
    /// Persistent namespaces.
    pub(crate) persistent: Vec<RequestNamespace>,
    /// The job's own allocation.
    pub(crate) allocation: Option<PathBuf>,
    /// The directory of the list of requests.
    pub(crate) list: PathBuf,
    pub(crate) is_mounted: bool,
    pub(crate) capacity_bytes: u64,
    pub(crate) namespaces: usize,
    /// Id of the job.
    pub(crate) tag: String,
    pub(crate) how: StagingOptions,
    /// Finds files with a failed write.
    pub(crate) write_failures: WriteFailures,
}

impl Shared {
    /// Waits after copying `bytes`, to keep within `--stage-rate`. Cancelling ends the wait.
    pub(crate) fn pause(&self, bytes: u64, is_cancelled: impl Fn() -> bool) {
        let Some(bytes_per_s) = self.how.bytes_per_s_max else {
            return;
        };
        let mut state = self.state.lock();
        let until = state.rate_limit.reserve(bytes, bytes_per_s, clock::now());
        drop(state);
        loop {
            let left = until.saturating_duration_since(clock::now());
            if left.is_zero() || is_cancelled() {
                return;
            }
            clock::sleep(left.min(CANCEL_CHECK));
        }
    }

    /// Records the result of a worker's task.
    pub(crate) fn finish(&self, task: &Task, result: CopyResult) {
        let mut state = self.state.lock();
        let failed = result.failed.len() as u64;
        let ended = state.table.finish(task, result.failed);
        let requested = &mut state.requested;
        if ended != TaskOutcome::Requeued {
            let (files, bytes) = match task.copy.direction {
                Direction::In => (&mut requested.files_in, &mut requested.bytes_in),
                Direction::Out => (&mut requested.files_out, &mut requested.bytes_out),
            };
            *files += result.files;
            *bytes += result.bytes;
        }
        let is_cancelled = task.cancelled.load(Ordering::SeqCst); // by the end of the job
        match ended {
            TaskOutcome::Failed if !is_cancelled => requested.failed += failed,
            TaskOutcome::Complete if task.copy.direction == Direction::Out => {
                state.close_request(&task.copy.inner, task.copy.is_directory);
            }
            _ => {}
        }
        drop(state);
        self.answer_waiting();
    }
}

impl State {
    /// Removes a completed request from the list.
    pub(crate) fn close_request(&mut self, inner: &Path, is_directory: bool) {
        let removed = self.open.remove(inner, is_directory);
        // On failure, the end of the job stages it out again, which harms no data.
        self.list_error = self.list_error.or(removed.err().map(|error| number_of(&error)));
    }
}

/// The errno of an error, as sent to programs.
pub(crate) fn number_of(error: &std::io::Error) -> Errno {
    error.raw_os_error().unwrap_or(libc::EIO)
}
