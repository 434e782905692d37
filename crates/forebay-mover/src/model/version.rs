//! Compares two looks at a file or directory by size, times and inode. Never reads contents.

use forebay_host::files::Status;

/// Time of modification in nanoseconds since 1970; only whether two are the same matters.
pub(crate) fn modified_ns(status: &Status) -> i64 {
    let (seconds, nanoseconds) = status.modified;
    seconds.wrapping_mul(1_000_000_000).wrapping_add(nanoseconds)
}

/// Are both as long and as old?
pub(crate) fn is_same(a: &Status, b: &Status) -> bool {
    (a.kind, a.size_bytes, a.modified) == (b.kind, b.size_bytes, b.modified)
}

/// Was a source left alone between two looks? Who sets its time of modification back cannot set back when it was
/// changed.
pub(crate) fn is_untouched(a: &Status, b: &Status) -> bool {
    is_same(a, b) && a.changed == b.changed
}

/// How a directory is: while this is the same, it is the same one, and no name in it was made, taken away or made
/// another file's, but within one tick of its file system's clock.
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

    /// Where whole seconds are kept, nobody can tell what was changed within one.
    pub(crate) fn is_fine(&self) -> bool {
        self.changed.1 != 0
    }
}
