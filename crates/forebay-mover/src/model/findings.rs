//! What planning found out that holds only in its process, so that no journal has it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::model::failed_writes::IncompleteFile;
use crate::model::version::Stamp;

/// The result of a plan, for the one run that follows it: later the files can differ.
#[derive(Debug, Default)]
pub struct Findings {
    /// Set if this process made the first plan of a journal: then it compared sources with destinations, and
    /// marked unchanged files as copied.
    pub(crate) already_present: Option<AlreadyPresent>,
    /// Planned files that may be incomplete.
    pub(crate) incomplete: Vec<IncompleteFile>,
}

/// The directories in which planning compared files.
#[derive(Debug, Default)]
pub(crate) struct AlreadyPresent {
    /// One directory of each file system, by device number.
    pub(crate) file_systems: BTreeMap<u64, PathBuf>,
    /// The stamp of each directory before its files were compared, by its number in the journal.
    pub(crate) directories: BTreeMap<i64, Stamp>,
}
