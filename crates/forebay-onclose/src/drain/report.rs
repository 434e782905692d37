//! What a drain did, in messages and as data.

use std::path::Path;
use std::time::Instant;

use forebay_host::clock;
use forebay_host::messages::Messages;
use indicatif::HumanBytes;
use serde::Serialize;

use super::queue::DrainStatus;
use forebay_staging::Staged;

/// What was drained of one job.
#[derive(Debug, Clone, Serialize)]
pub struct Drained {
    /// The counts when the job had ended; what waits then is left to stage-out, and so is what failed.
    #[serde(flatten)]
    pub status: DrainStatus,
    /// When the last byte of the job was safe, in seconds since its script began; none if some are not.
    pub last_safe_s: Option<f64>,
}

/// Failures named one by one; `--json` has all.
const SHOWN: usize = 10;

/// Reports what was done by now.
pub(super) fn report_progress(
    status: &DrainStatus,
    first_not_staged: Option<&Path>,
    messages: &dyn Messages,
) {
    let DrainStatus { done, waiting, .. } = status;
    let plural = if *done == 1 { "" } else { "s" };
    let bytes = HumanBytes(status.bytes);
    messages.note(&format!(
        "drained before stage-out: {done} file{plural}, {bytes}; {waiting} left to it"
    ));
    if let Some(first) = first_not_staged {
        messages.note(&format!(
            "drain: no stage_out line of type file or directory takes {}, of {} closed that match: not drained",
            first.display(),
            status.not_staged
        ));
    }
    for (path, reason) in status.failures.iter().take(SHOWN) {
        messages.warning(&format!("drain: {path}: {reason}; stage-out tries again"));
    }
    if status.failures.len() > SHOWN {
        let more = status.failures.len() - SHOWN;
        messages.warning(&format!("drain: and {more} more"));
    }
}

/// The account after stage-out, of a drain that began and had copied its last version then.
pub(super) fn summary(
    status: DrainStatus,
    staged: Option<&Staged>,
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
