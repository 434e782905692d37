//! One entry that a scan found in a source, before it has a row in the journal.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use forebay_host::files;
use forebay_host::files::Status;

use crate::model::failure::Failure;

use crate::model::version::Stamp;

/// A scan result.
pub(crate) enum ScanEntry {
    Directory {
        source: PathBuf,
        target: PathBuf,
        place: PathBuf,
        /// State of the destination directory, if the scan compared its files.
        existing: Option<Stamp>,
        is_of_tree: bool,
    },
    Entry {
        /// Index of its directory among those of this transfer.
        directory: usize,
        name: OsString,
        source_name: Option<OsString>,
        status: Status,
        /// The destination holds an unchanged copy.
        is_there: bool,
    },
    Refusal(Failure),
}

impl ScanEntry {
    pub(crate) fn directory(source: &Path, target: &Path, is_of_tree: bool) -> Self {
        // Normalize the path, so that a trailing slash does not make a second directory.
        Self::Directory {
            source: source.components().collect(),
            target: target.components().collect(),
            place: resolve(target),
            existing: None,
            is_of_tree,
        }
    }
}

/// The real path of the nearest existing ancestor, joined with the rest as written.
pub(crate) fn resolve(directory: &Path) -> PathBuf {
    files::final_path(directory).unwrap_or_else(|_| directory.to_owned())
}
