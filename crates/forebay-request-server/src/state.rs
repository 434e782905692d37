//! What the threads that answer and those that copy share: requests, counts and limits.

use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay_directive::Direction;
use forebay_host::clock;
use parking_lot::{Condvar, Mutex};
use serde::Serialize;

use crate::rate_limit::RateLimit;
use crate::table::{Errno, FailedFiles, RequestTable, Task, TaskOutcome};
use forebay_persistent::AskableNamespace;
use forebay_record::{PendingList, StagingOptions};

/// How long a cancelled copy may go on.
const CANCEL_CHECK: Duration = Duration::from_millis(100);

/// What was staged because programs asked for it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Requested {
    /// Files staged in while the job ran.
    pub files_in: u64,
    /// Their bytes.
    pub bytes_in: u64,
    /// Files staged out while the job ran.
    pub files_out: u64,
    /// Their bytes.
    pub bytes_out: u64,
    /// Failures while the job ran; what did not get out of the burst buffer was tried again at its end.
    pub failed: u64,
    /// Files and directories that were left to be staged out at its end, with what its script stages out.
    pub left_to_stage_out: usize,
}

/// What was copied, and what was not.
#[derive(Debug, Default)]
pub(crate) struct CopyResult {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) failed: FailedFiles,
}

/// Guarded by one lock.
pub(crate) struct State {
    pub(crate) table: RequestTable,
    pub(crate) open: PendingList,
    pub(crate) requested: Requested,
    pub(crate) workers: usize,
    pub(crate) workers_max: usize,
    pub(crate) rate_limit: RateLimit,
    /// The first change of the list that failed.
    pub(crate) list_error: Option<Errno>,
    /// The job has ended: later requests are refused.
    pub(crate) is_closed: bool,
}

pub(crate) struct Shared {
    pub(crate) state: Mutex<State>,
    /// Something has ended.
    pub(crate) changed: Condvar,
    /// Root of the striped namespace, with links resolved.
    pub(crate) root: PathBuf,
    /// Namespaces that outlive the job.
    pub(crate) persistent: Vec<AskableNamespace>,
    pub(crate) allocation: PathBuf,
    pub(crate) is_mounted: bool,
    pub(crate) capacity_bytes: u64,
    pub(crate) namespaces: usize,
    /// Id of the job.
    pub(crate) tag: String,
    pub(crate) how: StagingOptions,
}

impl Shared {
    /// Waits as long as `--stage-rate` says after so many bytes; less long once cancelled.
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

    /// A worker's task has ended.
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
        match ended {
            TaskOutcome::Failed => requested.failed += failed,
            TaskOutcome::Complete => state.close_request(&task.copy.inner, task.copy.is_directory),
            TaskOutcome::Dropped | TaskOutcome::Requeued => {}
        }
        self.changed.notify_all();
    }
}

impl State {
    /// Removes a request that is complete from the list.
    pub(crate) fn close_request(&mut self, inner: &Path, is_directory: bool) {
        let removed = self.open.remove(inner, is_directory);
        // Then it is staged out again at the end, which harms no data.
        self.list_error = self.list_error.or(removed.err().map(|error| number_of(&error)));
    }
}

/// The number of an error, as programs receive it.
pub(crate) fn number_of(error: &std::io::Error) -> Errno {
    error.raw_os_error().unwrap_or(libc::EIO)
}
