//! Paths that a plan leaves out.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rusqlite::params;

use crate::error::Error;
use crate::journal::columns::path_at;
use crate::journal::database::Journal;
use crate::model::transfer::Transfer;

impl Journal {
    /// Makes later plans leave out these paths below the source of the transfer, with all that is
    /// below them. Replaces earlier exclusions of this transfer.
    pub fn exclude(&self, transfer: &Transfer, paths: &BTreeSet<PathBuf>) -> Result<(), Error> {
        let (source, target) = ends(transfer);
        self.with(|connection| {
            let change = connection.transaction()?;
            let every = "DELETE FROM left_out WHERE source = ? AND target = ?";
            change.execute(every, params![source, target])?;
            for path in paths {
                let path = path.as_os_str().as_bytes();
                let add = "INSERT INTO left_out (source, target, path) VALUES (?, ?, ?)";
                change.execute(add, params![source, target, path])?;
            }
            change.commit()
        })
    }

    /// Removes all exclusions.
    pub fn clear_exclusions(&self) -> Result<(), Error> {
        self.with(|connection| connection.execute_batch("DELETE FROM left_out"))
    }

    /// The paths that planning leaves out of this transfer.
    pub(crate) fn left_out(&self, transfer: &Transfer) -> Result<BTreeSet<PathBuf>, Error> {
        let (source, target) = ends(transfer);
        self.with(|connection| {
            let query = "SELECT path FROM left_out WHERE source = ? AND target = ?";
            let mut select = connection.prepare_cached(query)?;
            let paths = select.query_map(params![source, target], |row| path_at(row, 0))?;
            paths.collect()
        })
    }
}

pub(crate) fn ends(transfer: &Transfer) -> (&[u8], &[u8]) {
    (transfer.source.as_os_str().as_bytes(), transfer.target.as_os_str().as_bytes())
}
