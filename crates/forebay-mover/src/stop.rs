//! Whether to stop, and starting threads.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::error::Error;

/// How often we look whether somebody has cancelled the journal.
pub(crate) const LOOK: Duration = Duration::from_millis(100);

/// Whether to stop: asked of the caller, and of the journal now and then.
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

/// A thread without which it does not go.
pub(crate) fn started<T>(thread: std::io::Result<T>, path: &Path) -> Result<(), Error> {
    let path = path.to_owned();
    thread.map(drop).map_err(|error| Error::NoThread { path, error })
}
