//! Compares the status of a file or directory at two times, by size, times and inode. Never reads contents.
//! In memory file systems, an equal status is no proof of an equal content.

use std::collections::BTreeMap;
use std::path::Path;

use forebay_host::files::Status;
use forebay_host::filesystem;
use parking_lot::Mutex;

/// Modification time in nanoseconds since 1970. It can overflow: use it only to test for equality.
pub(crate) fn modified_ns(status: &Status) -> i64 {
    let (seconds, nanoseconds) = status.modified;
    seconds.wrapping_mul(1_000_000_000).wrapping_add(nanoseconds)
}

/// Do both have the same kind, size and modification time?
pub(crate) fn is_same(a: &Status, b: &Status) -> bool {
    (a.kind, a.size_bytes, a.modified) == (b.kind, b.size_bytes, b.modified)
}

/// Is the source unchanged between two calls of stat? A program that resets the modification time
/// cannot reset the change time.
pub(crate) fn is_untouched(a: &Status, b: &Status) -> bool {
    is_same(a, b) && a.changed == b.changed
}

/// Which devices are memory file systems. There, a write through a shared mapping changes no time if the page was read
/// before.
#[derive(Default)]
pub(crate) struct MemoryDevices(Mutex<BTreeMap<u64, bool>>);

impl MemoryDevices {
    /// Is a file with this status in memory?
    pub(crate) fn has(&self, path: &Path, status: &Status) -> bool {
        let mut known = self.0.lock();
        let ask = || filesystem::is_in_memory(path).unwrap_or(true);
        *known.entry(status.device).or_insert_with(ask)
    }
}

/// Identity and change time of a directory. While both are equal, no entry was created, removed or
/// replaced, except within one tick of the file system's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) device: u64,
    inode: u64,
    changed: (i64, i64),
}

impl Stamp {
    pub(crate) fn of(status: &Status) -> Self {
        Self { device: status.device, inode: status.inode, changed: status.changed }
    }

    /// Without a fraction of a second, the change time misses changes within the same second.
    pub(crate) fn is_fine(&self) -> bool {
        self.changed.1 != 0
    }
}
