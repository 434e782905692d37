//! Prints the progress of a drain, in the format of Spectral's log.

use forebay_host::exit_codes::FAILED;
use forebay_host::messages::FAILURES_SHOWN;
use forebay_onclose::DrainStatus;

use crate::messages::{print_error_line, print_hint};

/// The counts, as Spectral prints them.
#[must_use]
pub fn drain_counts(status: &DrainStatus) -> String {
    let DrainStatus { enqueued, dequeued, done, .. } = status;
    format!("Enqueued:{enqueued} Dequeued:{dequeued} Done:{done}")
}

/// Prints the failed files. Returns the exit code.
pub fn print_drain_failures(status: &DrainStatus) -> i32 {
    for (path, reason) in status.failures.iter().take(FAILURES_SHOWN) {
        print_error_line(&format!("drain: {path}: {reason}"));
    }
    if !status.failures.is_empty() {
        let number = status.failures.len();
        print_hint(&format!(
            "files that did not arrive: {number}; stage-out tries again after the job"
        ));
    }
    drain_exit_code(status)
}

/// 1 if files failed, otherwise 0.
#[must_use]
pub fn drain_exit_code(status: &DrainStatus) -> i32 {
    if status.failures.is_empty() { 0 } else { FAILED }
}
