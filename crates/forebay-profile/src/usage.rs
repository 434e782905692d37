//! What records of I/O take, and where they are.

use std::path::PathBuf;

use forebay_host::{files, state, system};

use crate::error::Error;
use crate::ids::{PROFILES, ids};

/// The state directory whose record of I/O is the newest, else the first that a job would take.
///
/// # Errors
/// If the current directory was removed, and it is needed.
pub fn state_directory() -> Result<PathBuf, Error> {
    let directories = state::directories();
    let newest = |directory: &&PathBuf| ids(&directory.join(PROFILES)).pop();
    let found = directories.iter().rev().max_by_key(newest);
    let found = found.cloned().unwrap_or_default();
    Ok(if found.is_absolute() { found } else { system::current_directory()?.join(found) })
}

/// What records of I/O take.
#[derive(Debug)]
pub struct Usage {
    /// Their directory.
    pub directory: PathBuf,
    /// How many there are.
    pub records: usize,
    /// What they take, traces included.
    pub bytes: u64,
}

/// Looks at the records of I/O.
///
/// # Errors
/// As [`state_directory`].
pub fn usage() -> Result<Usage, Error> {
    let directory = state_directory()?.join(PROFILES);
    Ok(Usage { records: ids(&directory).len(), bytes: files::tree_bytes(&directory), directory })
}
