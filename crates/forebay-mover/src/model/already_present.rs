//! Unchanged files that a plan found at their destinations.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::model::version::Stamp;

/// The directories in which planning compared files.
#[derive(Debug, Default)]
pub(crate) struct AlreadyPresent {
    /// One directory of each file system, by device number.
    pub(crate) file_systems: BTreeMap<u64, PathBuf>,
    /// The stamp of each directory before its files were compared, by its number in the journal.
    pub(crate) directories: BTreeMap<i64, Stamp>,
}
