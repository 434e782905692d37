//! Requests to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Interval between checks whether the journal is cancelled.
pub(crate) const CANCEL_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Combines the stop of the caller with that of the journal, which is checked at intervals.
pub(crate) struct Stop<'a> {
    cancelled: &'a (dyn Fn() -> bool + Sync),
    pub(crate) is_asked: AtomicBool,
}

impl<'a> Stop<'a> {
    pub(crate) fn of(cancelled: &'a (dyn Fn() -> bool + Sync), is_asked: bool) -> Self {
        Self { cancelled, is_asked: AtomicBool::new(is_asked) }
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.is_asked.load(Ordering::Relaxed) || (self.cancelled)()
    }
}
