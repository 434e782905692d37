//! Reports of a drain, as messages and as data.

use std::path::Path;
use std::time::Instant;

use forebay_host::clock;
use forebay_host::messages::{FAILURES_SHOWN, Messages, counted};
use indicatif::HumanBytes;
use schemars::JsonSchema;
use serde::Serialize;

use super::queue::DrainStatus;
use forebay_staging::StagingSummary;

/// The result of the drain of one job.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Drained {
    /// The counts at the end of the job. Stage-out copies the versions that wait or failed.
    #[serde(flatten)]
    pub status: DrainStatus,
    /// When the last byte was safe, in seconds since the script started; none if some data is not safe.
    pub last_safe_s: Option<f64>,
}

/// Reports what was drained so far.
pub(super) fn report_progress(
    status: &DrainStatus,
    first_not_staged: Option<&Path>,
    messages: &dyn Messages,
) {
    let DrainStatus { done, waiting, .. } = status;
    let files = counted(*done, "file");
    let bytes = HumanBytes(status.bytes);
    messages.note(&format!("drained before stage-out: {files}, {bytes}; {waiting} left to it"));
    if let Some(first) = first_not_staged {
        messages.note(&format!(
            "drain: no stage_out line of type file or directory takes {}, of {} closed that match: not drained",
            first.display(),
            status.not_staged
        ));
    }
    for (path, reason) in status.failures.iter().take(FAILURES_SHOWN) {
        messages.warning(&format!("drain: {path}: {reason}; stage-out tries again"));
    }
    if status.failures.len() > FAILURES_SHOWN {
        let more = status.failures.len() - FAILURES_SHOWN;
        messages.warning(&format!("drain: and {more} more"));
    }
}

/// The summary after stage-out. `began` and `last_copied` are the times of the drain.
pub(super) fn summary(
    status: DrainStatus,
    staged: Option<&StagingSummary>,
    began: Instant,
    last_copied: Option<Instant>,
) -> Drained {
    let moved_by_stage_out = staged.is_some_and(|staged| staged.files > staged.unchanged_files);
    let complete = staged.is_none_or(|staged| staged.failures.is_empty());
    let last_safe = if moved_by_stage_out { Some(clock::now()) } else { last_copied };
    let last_safe_s = last_safe
        .filter(|_| complete)
        .map(|then| then.saturating_duration_since(began).as_secs_f64());
    Drained { status, last_safe_s }
}
