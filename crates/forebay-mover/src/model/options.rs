//! How a staging copies.

use serde::{Deserialize, Serialize};

/// Threads that copy, where nobody says how many. Small files mostly wait for their file system, whatever the
/// number of processors.
const WORKERS: usize = 12;

/// As many of them copy large files, where nobody says how many: the fewer are
/// copied at a time, the more have arrived when there is no time left.
const WORKERS_ON_LARGE: usize = 4;

/// Bytes of a piece of a large file, where nobody says how many.
pub const PIECE_BYTES: u64 = 64 << 20;

/// Where bytes are written first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// Under the final name, in directories that this staging has made: nobody looks into them yet.
    InPlace,
    /// Under a temporary name, which becomes the final one when the file is whole.
    AtomicRename,
}

/// Whether checksums are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verify {
    /// None.
    Off,
    /// Of what is read, and kept in the journal. Small files that a killed staging left half done are
    /// compared with them.
    Copy,
    /// Also of what was written: it is read again, from the disk as far as the kernel lets us.
    End,
}

/// Files at the destination that are kept, although they differ from their source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepChanged {
    /// Those whose inode was changed later than this, in milliseconds since 1970.
    pub after_unix_ms: u64,
    /// Of them only those that were modified later than their source: older ones may be earlier copies of it.
    pub newer_only: bool,
}

/// How to copy.
#[derive(Debug, Clone)]
pub struct Options {
    /// Threads, at least 1.
    pub workers: usize,
    /// So many of them, at least 1, copy large files, or pieces of them, at the same time.
    pub workers_on_large: usize,
    /// A file larger than this is copied in pieces of this size by several threads.
    pub piece_bytes: u64,
    /// Sync files before they are renamed, and their directories after it.
    pub durable: bool,
    /// Large files go past the page cache. What is used at once, on this node, is to be in it.
    pub past_page_cache: bool,
    /// Where bytes are written first.
    pub placing: WriteMode,
    /// Whether checksums are taken.
    pub verify: Verify,
    /// A file as long and as old as its source counts as the same only if its content is, too.
    pub checksum: bool,
    /// A source that is not as long and as old as it was planned is not copied: only that version is wanted.
    pub as_planned: bool,
    /// What is not replaced; none: a file is replaced whenever it differs from its source.
    pub keep_changed: Option<KeepChanged>,
    /// All threads together write no more than this; none: as fast as it goes.
    pub bytes_per_s_max: Option<u64>,
    /// Part of the temporary names, so that two stagings never meet.
    pub tag: String,
}

impl Options {
    /// Those of a staging of which nothing else is wanted: its files are safe when they have arrived.
    pub fn of(tag: &str) -> Self {
        Self {
            workers: WORKERS,
            workers_on_large: WORKERS_ON_LARGE,
            piece_bytes: PIECE_BYTES,
            durable: true,
            past_page_cache: true,
            placing: WriteMode::AtomicRename,
            verify: Verify::Copy,
            checksum: false,
            as_planned: false,
            keep_changed: None,
            bytes_per_s_max: None,
            tag: tag.to_owned(),
        }
    }

    /// Is what is written synced? Also what is to be read again: before that it would come from memory.
    pub(crate) fn syncs(&self) -> bool {
        self.durable || self.verify == Verify::End
    }
}
