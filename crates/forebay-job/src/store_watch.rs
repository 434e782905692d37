//! Notices that the file system of the store is full: what the job writes then may be incomplete.

use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

use forebay_host::{clock, filesystem};

/// How often the space is looked at.
pub(crate) const INTERVAL: Duration = Duration::from_millis(200);
/// A file system stores times by a clock that may be so far behind.
const CLOCK_TICK_MS: u64 = 20;

/// Watches the store of one job while its programs run.
#[derive(Debug, Default)]
pub(crate) struct StoreWatch {
    had_room_unix_ms: Cell<u64>,
    full_unix_ms: Cell<Option<u64>>,
}

impl StoreWatch {
    /// Begins when the store has room, before the job writes.
    pub(crate) fn begin() -> Self {
        let watch = Self::default();
        watch.had_room_unix_ms.set(now_unix_ms());
        watch
    }

    /// Looks at the store, until it was full once.
    pub(crate) fn check(&self, store: &Path) {
        if self.full_unix_ms.get().is_some() {
            return;
        }
        let now = now_unix_ms();
        match filesystem::is_full(store) {
            Ok(true) => self.full_unix_ms.set(Some(now)),
            Ok(false) => self.had_room_unix_ms.set(now),
            Err(_) => {} // the stage-out reports a store that cannot be used
        }
    }

    /// When the store was first seen to be full.
    pub(crate) fn full_unix_ms(&self) -> Option<u64> {
        self.full_unix_ms.get()
    }

    /// When the store became full: files modified later may be incomplete. None if it was never full.
    pub(crate) fn doubtful_since_unix_ms(&self) -> Option<u64> {
        self.full_unix_ms.get().map(|_| self.had_room_unix_ms.get().saturating_sub(CLOCK_TICK_MS))
    }
}

fn now_unix_ms() -> u64 {
    u64::try_from(clock::unix_milliseconds()).unwrap_or_default()
}
