//! What the kernel has open: numbers that it gets, and what they stand for.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;

use crate::error::Errno;

/// Open files, or open directories.
pub(crate) struct Handles<T> {
    all: RwLock<HashMap<u64, Arc<T>>>,
    last: AtomicU64,
}

impl<T> Default for Handles<T> {
    fn default() -> Self {
        Self { all: RwLock::default(), last: AtomicU64::new(0) }
    }
}

impl<T> Handles<T> {
    /// The number of a new one.
    pub(crate) fn add(&self, opened: T) -> u64 {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.all.write().insert(number, Arc::new(opened));
        number
    }

    pub(crate) fn get(&self, number: u64) -> Result<Arc<T>, Errno> {
        self.all.read().get(&number).cloned().ok_or(Errno(libc::EBADF))
    }

    pub(crate) fn remove(&self, number: u64) -> Result<Arc<T>, Errno> {
        self.all.write().remove(&number).ok_or(Errno(libc::EBADF))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_handles_are_unknown() {
        let handles = Handles::default();
        let (first, second) = (handles.add('a'), handles.add('b'));
        assert_ne!(first, second);
        assert_eq!(handles.get(second).map(|found| *found), Ok('b'));
        assert_eq!(handles.remove(first).map(|found| *found), Ok('a'));
        assert_eq!(handles.get(first), Err(Errno(libc::EBADF)));
    }
}
