//! Rows of the journal as the copy engine uses them. Never reads or changes a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::model::state::State;

/// Kinds of entries in the journal.
pub(crate) const FILE: i64 = 0;

pub(crate) const LINK: i64 = 1;

/// A file or link that is to be moved.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) id: i64,
    /// Number of its directory.
    pub(crate) directory: i64,
    pub(crate) kind: i64,
    pub(crate) source: PathBuf,
    pub(crate) target: PathBuf,
    /// When it was planned; it may have changed since.
    pub(crate) size_bytes: u64,
    pub(crate) modified_ns: i64,
    pub(crate) state: State,
    /// Of what was copied last, if one was taken.
    pub(crate) checksum: Option<u64>,
    /// The directory is no tree's: its source was named itself, and links to it are followed.
    pub(crate) is_named: bool,
    /// Its directory, while that is filled under another name.
    pub(crate) filled: Option<Arc<Path>>,
}

/// A step that a file has done.
pub(crate) struct Step {
    pub(crate) id: i64,
    pub(crate) state: State,
    pub(crate) checksum: Option<u64>,
}

impl Step {
    pub(crate) fn to(item: &Item, state: State) -> Self {
        Self { id: item.id, state, checksum: None }
    }

    /// Is it the same step of the next entry? Many of those are one step for SQLite.
    pub(crate) fn is_followed_alike(&self, next: &Self) -> bool {
        self.id.checked_add(1) == Some(next.id)
            && self.state == next.state
            && self.checksum.is_none()
            && next.checksum.is_none()
    }
}

/// A directory that is to be made or finished.
pub(crate) struct Directory {
    pub(crate) id: i64,
    pub(crate) source: PathBuf,
    pub(crate) target: PathBuf,
    /// We have made it, or were about to.
    pub(crate) is_begun: bool,
}

/// A file that is to become another name of one that has arrived.
pub(crate) struct HardLink {
    pub(crate) item: Item,
    /// Where the first one is.
    pub(crate) first: PathBuf,
    pub(crate) first_has_arrived: bool,
}
