//! What the threads that answer and those that copy share: requests, counts and limits.

use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay_directive::Direction;
use forebay_host::clock;
use parking_lot::{Condvar, Mutex};
use serde::Serialize;

use super::book::{Book, Ended, Errno, Failed, Task};
use super::rate_limit::RateLimit;
use forebay_persistent::Askable;
use forebay_record::{OpenRequests, StagingWish};

/// Whoever cancels a copy waits no longer than this for it.
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

/// What was moved, and what was not.
#[derive(Debug, Default)]
pub(super) struct CopyResult {
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) failed: Failed,
}

/// All that is known, for one thread at a time.
pub(super) struct State {
    pub(super) book: Book,
    pub(super) open: OpenRequests,
    pub(super) requested: Requested,
    pub(super) workers: usize,
    pub(super) workers_max: usize,
    pub(super) rate_limit: RateLimit,
    /// Something could not be written down.
    pub(super) trouble: Option<Errno>,
    /// The job has ended: what is asked now was asked too late.
    pub(super) is_closed: bool,
}

pub(super) struct Shared {
    pub(super) state: Mutex<State>,
    /// Something has ended.
    pub(super) changed: Condvar,
    /// Root of the striped namespace, with links resolved.
    pub(super) root: PathBuf,
    /// Namespaces that outlive the job.
    pub(super) persistent: Vec<Askable>,
    pub(super) allocation: PathBuf,
    pub(super) is_mounted: bool,
    pub(super) capacity_bytes: u64,
    pub(super) namespaces: usize,
    /// Id of the job.
    pub(super) tag: String,
    pub(super) how: StagingWish,
}

impl Shared {
    /// Waits as long as `--stage-rate` says after so many bytes; less long once cancelled.
    pub(super) fn pause(&self, bytes: u64, is_cancelled: impl Fn() -> bool) {
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
    pub(super) fn ended(&self, task: &Task, result: CopyResult) {
        let mut state = self.state.lock();
        let failed = result.failed.len() as u64;
        let ended = state.book.ended(task, result.failed);
        let requested = &mut state.requested;
        if ended != Ended::Again {
            let (files, bytes) = match task.copy.direction {
                Direction::In => (&mut requested.files_in, &mut requested.bytes_in),
                Direction::Out => (&mut requested.files_out, &mut requested.bytes_out),
            };
            *files += result.files;
            *bytes += result.bytes;
        }
        match ended {
            Ended::Failed => requested.failed += failed,
            Ended::Complete => state.closed(&task.copy.inner, task.copy.is_directory),
            Ended::Forgotten | Ended::Again => {}
        }
        self.changed.notify_all();
    }
}

impl State {
    /// A request is open no more.
    pub(super) fn closed(&mut self, inner: &Path, is_directory: bool) {
        let removed = self.open.remove(inner, is_directory);
        // Then it will be staged out once more at the end: no harm to the data.
        self.trouble = self
            .trouble
            .or(removed.err().map(|error| number_of(&error)));
    }
}

/// The number of an error, which programs are told.
pub(super) fn number_of(error: &std::io::Error) -> Errno {
    error.raw_os_error().unwrap_or(libc::EIO)
}
