//! How a run copies: its threads, checksums and limits, and the files that it keeps.
//! Assumes that stagings at the same time have different tags: a tag is in the names of partial files.

use serde::{Deserialize, Serialize};

use crate::model::remote::RemoteCopiers;

/// Default number of threads. Copies of small files mostly wait for the file system, so the number
/// does not depend on the processors.
const WORKERS: usize = 12;

/// Default number of threads on large files. With fewer large files at a time, more are complete
/// when the time runs out.
const WORKERS_ON_LARGE: usize = 4;

/// Default size in bytes of the pieces of a large file.
pub const PIECE_BYTES: u64 = 64 << 20;

/// Where Forebay writes bytes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// Under the final name, in directories that this run created. Other users cannot look into them yet.
    InPlace,
    /// Under a temporary name. Forebay renames the file once it is complete.
    AtomicRename,
}

/// Which checksums Forebay computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verify {
    /// No checksums.
    Off,
    /// Checksums of the bytes read, recorded in the journal. A restart compares small partial files
    /// with them.
    Copy,
    /// As `Copy`. Forebay also reads the written files back, from the disk as far as the kernel allows.
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
    /// How many threads copy large files, or pieces of them, at the same time; at least 1.
    pub workers_on_large: usize,
    /// Several threads copy a file larger than this, in pieces of this size.
    pub piece_bytes: u64,
    /// Sync files before the rename, and their directories after it.
    pub durable: bool,
    /// Large files bypass the page cache. Set to false for data that this node reads at once.
    pub past_page_cache: bool,
    /// Where Forebay writes bytes first.
    pub placing: WriteMode,
    /// Which checksums Forebay computes.
    pub verify: Verify,
    /// Compare contents, too: equal size and modification time are not enough to skip a file.
    pub checksum: bool,
    /// Reject a source whose size or modification time differs from the plan.
    pub as_planned: bool,
    /// What is not replaced; none: a file is replaced whenever it differs from its source.
    pub keep_changed: Option<KeepChanged>,
    /// All threads together write no more than this; none: as fast as it goes.
    pub bytes_per_s_max: Option<u64>,
    /// Other nodes that help. Not used with `bytes_per_s_max`.
    pub remotes: RemoteCopiers,
    /// Part of the temporary names. It keeps concurrent stagings apart.
    pub tag: String,
}

impl Options {
    /// The defaults: copied files survive a power failure.
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
            remotes: RemoteCopiers::default(),
            tag: tag.to_owned(),
        }
    }

    /// Does Forebay sync files? `Verify::End` needs it, too: unsynced data is read from memory.
    pub(crate) fn syncs(&self) -> bool {
        self.durable || self.verify == Verify::End
    }
}
