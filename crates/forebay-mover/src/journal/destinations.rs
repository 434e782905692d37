//! Finds and marks files by their destinations; stores rejected ones.
//! Assumes that a file which the caller marks as delivered is there: compares its source only.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use forebay_host::files::Status;
use rusqlite::params;

use crate::error::Error;
use crate::journal::columns::{PLACED, PLANNED, bytes, path_at, sql_integer};
use crate::journal::database::Journal;
use crate::model::failure::Failure;
use crate::model::scan_entry::resolve;
use crate::model::version::modified_ns;

impl Journal {
    /// Marks a file as delivered, as the caller states. The destination may not keep its times, so Forebay
    /// does not compare them. Returns whether the plan has such a file and its source is unchanged.
    pub fn mark_delivered(&self, target: &Path, source: &Status) -> Result<bool, Error> {
        let (Some(parent), Some(name)) = (target.parent(), target.file_name()) else {
            return Ok(false);
        };
        self.with(|connection| {
            let mut set = connection.prepare_cached(&format!(
                "UPDATE entry SET state = {PLACED} WHERE state = {PLANNED} AND link_of IS NULL AND name = ? \
                 AND inode = ? AND size_bytes = ? AND modified_ns = ? \
                 AND place = (SELECT id FROM place WHERE path = ?)",
            ))?;
            let changed = set.execute(params![
                name.as_bytes(),
                sql_integer(source.inode),
                sql_integer(source.size_bytes),
                modified_ns(source),
                bytes(&resolve(parent)),
            ])?;
            Ok(changed > 0)
        })
    }

    /// Is the file for this target copied and renamed?
    pub fn is_placed(&self, target: &Path) -> Result<bool, Error> {
        let (Some(parent), Some(name)) = (target.parent(), target.file_name()) else {
            return Ok(false);
        };
        self.with(|connection| {
            let mut find = connection.prepare_cached(&format!(
                "SELECT 1 FROM entry WHERE state = {PLACED} AND name = ? AND place = (SELECT id FROM place WHERE path = ?)",
            ))?;
            find.exists(params![name.as_bytes(), bytes(&resolve(parent))])
        })
    }

    /// Number and path of each directory that receives files.
    pub(crate) fn places(&self) -> Result<Vec<(i64, PathBuf)>, Error> {
        self.with(|connection| {
            let mut found = connection.prepare("SELECT id, path FROM place")?;
            let rows = found.query_map([], |row| Ok((row.get(0)?, path_at(row, 1)?)))?;
            rows.collect()
        })
    }

    /// Rejects permanently all files planned for a place.
    pub(crate) fn reject_place(&self, place: i64, reason: &str) -> Result<(), Error> {
        self.with(|connection| {
            let mut targets = connection.prepare("SELECT target FROM directory WHERE place = ?")?;
            let targets = targets.query_map([place], |row| path_at(row, 0))?;
            for target in targets.collect::<rusqlite::Result<Vec<_>>>()? {
                refuse(connection, &Failure::new(target, reason.to_owned()), true)?;
            }
            let directories = "SELECT id FROM directory WHERE place = ?";
            let delete = format!("DELETE FROM entry WHERE directory IN ({directories})");
            connection.execute(&delete, [place])?;
            connection.execute("DELETE FROM directory WHERE place = ?", [place]).map(drop)
        })
    }
}

/// Records a rejected source. If `is_for_good`, this staging can never copy it.
pub(crate) fn refuse(
    connection: &rusqlite::Connection,
    failure: &Failure,
    is_for_good: bool,
) -> rusqlite::Result<()> {
    let mut set =
        connection.prepare_cached("INSERT OR REPLACE INTO refusal (source, reason, remedy, errno, is_for_good) VALUES (?, ?, ?, ?, ?)")?;
    set.execute(params![
        failure.path.as_os_str().as_bytes(),
        failure.reason,
        failure.remedy,
        failure.errno,
        is_for_good
    ])
    .map(drop)
}
