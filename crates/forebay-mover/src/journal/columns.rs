//! Values of columns. Paths are stored as bytes, unsigned numbers as write_owner ones.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rusqlite::Row;

/// The path in a column.
pub(crate) fn path_at(row: &Row, column: usize) -> rusqlite::Result<PathBuf> {
    Ok(path_of(&row.get::<_, Vec<u8>>(column)?))
}

pub(crate) fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

pub(crate) fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// SQLite's numbers have a sign; only whether two are the same matters.
#[allow(clippy::cast_possible_wrap)]
pub(crate) fn number(value: u64) -> i64 {
    value as i64
}
