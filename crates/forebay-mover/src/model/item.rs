//! Rows of the journal in the form that the copy engine uses. Never reads or changes a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::model::state::State;

/// Kinds of entries in the journal.
pub(crate) const FILE: i64 = 0;

pub(crate) const LINK: i64 = 1;

/// A file or link to copy.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) id: i64,
    /// Number of its directory in the journal.
    pub(crate) directory: i64,
    pub(crate) kind: i64,
    pub(crate) source: PathBuf,
    pub(crate) target: PathBuf,
    /// Size when it was planned. The source can have changed since.
    pub(crate) size_bytes: u64,
    pub(crate) modified_ns: i64,
    pub(crate) state: State,
    /// Checksum of the last copied content, if one was computed.
    pub(crate) checksum: Option<u64>,
    /// The user named the source itself, not a directory tree. Links to it are followed.
    pub(crate) is_named: bool,
    /// Partial directory that holds the file until Forebay renames the directory.
    pub(crate) filled: Option<Arc<Path>>,
}

/// A new state of a file.
pub(crate) struct Step {
    pub(crate) id: i64,
    pub(crate) state: State,
    pub(crate) checksum: Option<u64>,
}

impl Step {
    pub(crate) fn to(item: &Item, state: State) -> Self {
        Self { id: item.id, state, checksum: None }
    }

    /// Is `next` the same step for the next entry? SQLite handles a run of such steps in one statement.
    pub(crate) fn is_followed_alike(&self, next: &Self) -> bool {
        self.id.checked_add(1) == Some(next.id)
            && self.state == next.state
            && self.checksum.is_none()
            && next.checksum.is_none()
    }
}

/// A directory to create or finish.
pub(crate) struct Directory {
    pub(crate) id: i64,
    pub(crate) source: PathBuf,
    pub(crate) target: PathBuf,
    /// Forebay created it, or was about to.
    pub(crate) is_begun: bool,
}

/// A file that becomes a hard link to a file copied earlier.
pub(crate) struct HardLink {
    pub(crate) item: Item,
    /// Destination of the first name.
    pub(crate) first: PathBuf,
    pub(crate) first_has_arrived: bool,
}
