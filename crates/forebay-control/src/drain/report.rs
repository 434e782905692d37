//! What a drain did, told and handed over.

use indicatif::HumanBytes;
use serde::Serialize;

use super::queue::DrainStatus;
use super::{Drain, locked};
use crate::Staged;

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

impl Drain<'_> {
    /// Tells what was done by now.
    pub(crate) fn tell(&self) -> DrainStatus {
        let watcher = self.watcher;
        let status = locked(&self.queue).status();
        let DrainStatus { done, waiting, .. } = status;
        let plural = if done == 1 { "" } else { "s" };
        let bytes = HumanBytes(status.bytes);
        watcher.note(&format!(
            "drained before stage-out: {done} file{plural}, {bytes}; {waiting} left to it"
        ));
        if let Some(first) = &locked(&self.queue).first_not_staged {
            watcher.note(&format!(
                "drain: no stage_out line of type file or directory takes {}, of {} closed that match: not drained",
                first.display(),
                status.not_staged
            ));
        }
        for (path, reason) in status.failures.iter().take(SHOWN) {
            watcher.warning(&format!("drain: {path}: {reason}; stage-out tries again"));
        }
        if status.failures.len() > SHOWN {
            let more = status.failures.len() - SHOWN;
            watcher.warning(&format!("drain: and {more} more"));
        }
        status
    }

    /// The account, after stage-out.
    pub(crate) fn drained(&self, status: DrainStatus, staged: Option<&Staged>) -> Drained {
        let moved_by_stage_out = staged.is_some_and(|staged| staged.files > staged.unchanged_files);
        let complete = staged.is_none_or(|staged| staged.failures.is_empty());
        let last_safe = if moved_by_stage_out {
            Some(forebay_host::clock::now())
        } else {
            locked(&self.queue).last_safe
        };
        let since = |then: std::time::Instant| then.saturating_duration_since(self.began);
        Drained {
            status,
            last_safe_s: last_safe
                .filter(|_| complete)
                .map(|then| since(then).as_secs_f64()),
        }
    }
}
