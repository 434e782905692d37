//! One thing that a scan found in a source, before it has a row in the journal.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use forebay_host::files;
use forebay_host::files::Status;

use crate::model::failure::Failure;

use crate::model::version::Stamp;

/// Something found in a source.
pub(crate) enum Found {
    Directory {
        source: PathBuf,
        target: PathBuf,
        place: PathBuf,
        /// How the target was, if what is in it was compared with what is there.
        standing: Option<Stamp>,
        is_of_tree: bool,
    },
    Entry {
        /// Number of its directory among those of this transfer.
        directory: usize,
        name: OsString,
        source_name: Option<OsString>,
        status: Status,
        /// It is at its target already, unchanged.
        is_there: bool,
    },
    Refusal(Failure),
}

impl Found {
    pub(crate) fn directory(source: &Path, target: &Path, is_of_tree: bool) -> Self {
        // One spelling: a slash at the end makes no other directory.
        Self::Directory {
            source: source.components().collect(),
            target: target.components().collect(),
            place: resolve(target),
            standing: None,
            is_of_tree,
        }
    }
}

/// The real path of the nearest ancestor that exists, and the rest as written.
pub(crate) fn resolve(directory: &Path) -> PathBuf {
    files::final_path(directory).unwrap_or_else(|_| directory.to_owned())
}
