//! Counts stop requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::mpsc;

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGTERM};

/// The stop requests: SIGINT, SIGTERM, SIGHUP, SIGQUIT, or a client that disconnects.
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

    /// The first signal that requested a stop.
    pub fn signal(&self) -> Option<i32> {
        Some(self.0.signal.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
    }

    /// Whether the first stop request was a SIGTERM.
    pub fn is_by_sigterm(&self) -> bool {
        self.signal() == Some(SIGTERM)
    }

    pub(super) fn add(&self, signal: i32) {
        let signals = &self.0.signal;
        // Keep only the first signal.
        signals.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst).ok();
        self.0.count.fetch_add(1, Ordering::SeqCst);
    }
}

/// Sends events from another thread to the thread that waits in [`Events`].
#[derive(Debug, Clone)]
pub struct EventSender {
    pub(super) sender: mpsc::Sender<i32>,
    pub(super) stops: StopRequests,
}

impl EventSender {
    /// Wakes the waiting thread.
    pub fn wake(&self) {
        self.sender.send(SIGCHLD).ok(); // the receiver may be gone
    }

    /// Requests a stop, as SIGHUP does, because the client disconnected.
    pub fn disconnect(&self) {
        self.stops.add(0);
        self.sender.send(SIGHUP).ok();
    }
}
