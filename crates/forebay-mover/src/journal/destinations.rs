//! Finds and marks files by their destinations; stores rejected ones.
//! Assumes that a file which the caller marks as delivered is there: compares its source only.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use forebay_host::files::Status;
use rusqlite::{OptionalExtension, TransactionBehavior, params};

use crate::error::Error;
use crate::journal::columns::{PLACED, PLANNED, bytes, path_at, sql_integer};
use crate::journal::database::Journal;
use crate::model::counts::Number;
use crate::model::failure::Failure;
use crate::model::scan_entry::resolve;
use crate::model::version::modified_ns;

impl Journal {
    /// Marks files as delivered, as the caller states with their targets and the status of their sources. The destination
    /// may not keep times, so Forebay does not compare them. Returns how many of them the plan has with an unchanged source.
    pub fn mark_delivered<'a>(
        &self,
        delivered: impl Iterator<Item = (&'a Path, &'a Status)>,
    ) -> Result<Number, Error> {
        let delivered: Vec<_> = delivered
            .filter_map(|(target, source)| {
                Some((resolve(target.parent()?), target.file_name()?, source))
            })
            .collect();
        self.with(|connection| {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let mut marked = Number::default();
            for (place, name, source) in &delivered {
                let mut set = change.prepare_cached(&format!(
                    "UPDATE entry SET state = {PLACED} WHERE state = {PLANNED} AND link_of IS NULL \
                     AND name = ? AND inode = ? AND size_bytes = ? AND modified_ns = ? \
                     AND place = (SELECT id FROM place WHERE path = ?)",
                ))?;
                let changed = set.execute(params![
                    name.as_bytes(),
                    sql_integer(source.inode),
                    sql_integer(source.size_bytes),
                    modified_ns(source),
                    bytes(place),
                ])? as u64;
                marked.files += changed;
                marked.bytes += changed * source.size_bytes;
            }
            change.commit()?;
            Ok(marked)
        })
    }

    /// Is the file for this target copied and renamed?
    pub fn is_placed(&self, target: &Path) -> Result<bool, Error> {
        Ok(self.placed(target)?.is_some())
    }

    /// The checksum of what was copied to this target; none if there is none.
    pub fn checksum(&self, target: &Path) -> Result<Option<u64>, Error> {
        Ok(self.placed(target)?.flatten())
    }

    fn placed(&self, target: &Path) -> Result<Option<Option<u64>>, Error> {
        let (Some(parent), Some(name)) = (target.parent(), target.file_name()) else {
            return Ok(None);
        };
        self.with(|connection| {
            let mut find = connection.prepare_cached(&format!(
                "SELECT checksum FROM entry WHERE state = {PLACED} AND name = ? \
                 AND place = (SELECT id FROM place WHERE path = ?)",
            ))?;
            let place = resolve(parent);
            let values = params![name.as_bytes(), bytes(&place)];
            let found = find.query_row(values, |row| row.get::<_, Option<i64>>(0)).optional()?;
            Ok(found.map(|checksum| checksum.map(i64::cast_unsigned)))
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

    /// The directories that receive files, with links resolved.
    pub fn destinations(&self) -> Result<Vec<PathBuf>, Error> {
        self.with(|connection| {
            let query = "SELECT path FROM place WHERE id IN (SELECT place FROM directory)";
            let mut found = connection.prepare(query)?;
            let rows = found.query_map([], |row| path_at(row, 0))?;
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
