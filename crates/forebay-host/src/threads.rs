//! Starts threads. A machine may allow no further one (`ulimit -u`, `pids.max`), which is an error here, no panic.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

use crate::{Error, Result, with_context};

/// The operation in the error.
pub(crate) const START: &str = "start a thread of";

/// Starts a thread.
pub fn spawn<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>> {
    named(Builder::new().spawn(run))
}

/// Starts a thread in a scope. What it borrows must last as long as the scope.
pub fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    run: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    named(Builder::new().spawn_scoped(scope, run))
}

/// The error of a thread that did not do its work.
pub fn error(source: io::Error) -> Error {
    Error { operation: "continue a thread of", path: PathBuf::from("forebay"), source }
}

fn named<T>(started: io::Result<T>) -> Result<T> {
    with_context(started, START, Path::new("forebay"))
}

/// At most so many threads that serve others. Each counts until its slot is dropped.
#[derive(Debug)]
pub struct Slots {
    taken: Arc<AtomicUsize>,
    most: usize,
}

/// The slot of one thread.
#[derive(Debug)]
pub struct Slot(Arc<AtomicUsize>);

impl Slots {
    /// All are free.
    pub fn new(most: usize) -> Self {
        Self { taken: Arc::default(), most }
    }

    /// Takes a slot; none if all are taken.
    pub fn take(&self) -> Option<Slot> {
        let slot = Slot(Arc::clone(&self.taken));
        (self.taken.fetch_add(1, Ordering::Relaxed) < self.most).then_some(slot)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The result of `run`; none if it panicked. The panic has printed its message. What `run` changed may be
/// half done: the caller gives it up, or looks at it again.
pub fn caught<T>(run: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(run)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_thread_slots_are_free_again() {
        let slots = Slots::new(2);
        let (first, second) = (slots.take(), slots.take());
        assert!(first.is_some() && second.is_some() && slots.take().is_none());
        drop(first);
        assert!(slots.take().is_some());
    }

    #[test]
    fn caught_returns_the_result_or_none_after_a_panic() {
        assert_eq!(caught(|| 1), Some(1));
        assert_eq!(caught(|| -> i32 { panic!("of a test") }), None);
    }
}
