//! Names of the files of a journal.

use std::path::{Path, PathBuf};

/// Suffix of the lock file.
pub(crate) const LOCK_END: &str = ".lock";

/// SQLite's name of a database in memory.
pub(crate) const IN_MEMORY: &str = ":memory:";

pub(crate) fn path_with_suffix(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}
