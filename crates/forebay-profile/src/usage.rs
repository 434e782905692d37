//! Locates records of I/O, and measures their size.

use std::path::PathBuf;

use forebay_host::{files, state, system};

use crate::error::Error;
use crate::ids::{PROFILES, ids};

/// The state directory with the newest record of I/O, or else the first one that a job would use.
///
/// # Errors
/// If the path is relative and the current directory was removed.
pub fn state_directory() -> Result<PathBuf, Error> {
    let directories = state::directories();
    let newest = |directory: &&PathBuf| ids(&directory.join(PROFILES)).pop();
    let found = directories.iter().rev().max_by_key(newest);
    let found = found.cloned().unwrap_or_default();
    Ok(if found.is_absolute() { found } else { system::current_directory()?.join(found) })
}

/// The size of all records of I/O.
#[derive(Debug)]
pub struct Usage {
    /// Their directory.
    pub directory: PathBuf,
    /// The number of records.
    pub records: usize,
    /// Their total size, including traces.
    pub bytes: u64,
}

/// Measures the records of I/O.
///
/// # Errors
/// As [`state_directory`].
pub fn usage() -> Result<Usage, Error> {
    let directory = state_directory()?.join(PROFILES);
    Ok(Usage { records: ids(&directory).len(), bytes: files::tree_bytes(&directory), directory })
}
