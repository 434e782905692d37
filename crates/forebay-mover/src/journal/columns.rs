//! Values of columns. The journal stores paths as bytes and unsigned numbers as signed ones.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rusqlite::Row;

use crate::model::state::State;

pub(crate) fn path_at(row: &Row, column: usize) -> rusqlite::Result<PathBuf> {
    Ok(path_of(&row.get::<_, Vec<u8>>(column)?))
}

pub(crate) fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

pub(crate) fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// SQLite's integers are signed. Use the result only to test for equality.
#[allow(clippy::cast_possible_wrap)]
pub(crate) fn sql_integer(value: u64) -> i64 {
    value as i64
}

/// Numbers of [`State`], for SQL statements.
pub(crate) const PLANNED: i64 = State::Planned as i64;
pub(crate) const COPYING: i64 = State::Copying as i64;
pub(crate) const COPIED: i64 = State::Copied as i64;
pub(crate) const VERIFIED: i64 = State::Verified as i64;
pub(crate) const PLACED: i64 = State::Placed as i64;
pub(crate) const FAILED: i64 = State::Failed as i64;
