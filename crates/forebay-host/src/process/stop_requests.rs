//! Being asked to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::mpsc;

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGTERM};

/// How often we were asked to stop (SIGINT, SIGTERM, SIGHUP, SIGQUIT, or the end of who asks).
#[derive(Debug, Clone, Default)]
pub struct StopRequests(Arc<Stopped>);

#[derive(Debug, Default)]
struct Stopped {
    count: AtomicUsize,
    /// The first signal, or 0.
    signal: AtomicI32,
}

impl StopRequests {
    /// The count so far.
    pub fn count(&self) -> usize {
        self.0.count.load(Ordering::SeqCst)
    }

    /// The first signal that asked us.
    pub fn signal(&self) -> Option<i32> {
        Some(self.0.signal.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
    }

    /// Was it SIGTERM that asked us first?
    pub fn is_by_sigterm(&self) -> bool {
        self.signal() == Some(SIGTERM)
    }

    pub(super) fn add(&self, signal: i32) {
        let signals = &self.0.signal;
        // Only the first one counts.
        signals.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst).ok();
        self.0.count.fetch_add(1, Ordering::SeqCst);
    }
}

/// Sends events from another thread to the one that waits in [`Events`].
#[derive(Debug, Clone)]
pub struct EventSender {
    pub(super) sender: mpsc::Sender<i32>,
    pub(super) stops: StopRequests,
}

impl EventSender {
    /// Something has come: look again.
    pub fn ring(&self) {
        self.sender.send(SIGCHLD).ok(); // who has gone looks at nothing
    }

    /// Whoever asked for what we do is gone: we are to stop, as at SIGHUP.
    pub fn disconnect(&self) {
        self.stops.add(0);
        self.sender.send(SIGHUP).ok();
    }
}
