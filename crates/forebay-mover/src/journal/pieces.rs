//! Records the copied pieces of large files, so that a restart does not copy them again.
//! Assumes that pieces may be lost when the machine restarts: then it discards all of them.

use forebay_host::files::Status;
use rusqlite::types::Value;
use rusqlite::{TransactionBehavior, params};

use crate::error::Error;
use crate::journal::columns::{COPIED, COPYING, VERIFIED, sql_integer};
use crate::journal::database::Journal;
use crate::model::version::modified_ns;

impl Journal {
    /// Discards partial copies made before a restart of the machine, whose data may not be on disk.
    /// Discards pieces of another size, too: `cut` identifies both.
    pub(crate) fn drop_stale_pieces(&self, cut: &str) -> Result<(), Error> {
        let before = self.meta::<String>("pieces")?;
        if before.as_deref() == Some(cut) {
            return Ok(());
        }
        self.with(|connection| {
            // Without an earlier run, copied files are those that planning found unchanged.
            if before.is_some() {
                let half_done = format!(
                    "UPDATE entry SET state = {COPYING} WHERE state IN ({COPIED}, {VERIFIED})"
                );
                connection.execute(&half_done, [])?;
            }
            connection.execute("DELETE FROM piece", [])
        })?;
        self.set_meta("pieces", cut)
    }

    /// Number and checksum of each copied piece, if the source is unchanged since. Otherwise
    /// Forebay deletes the pieces and records the new version of the source.
    pub(crate) fn pieces(&self, id: i64, status: &Status) -> Result<Vec<(u64, u64)>, Error> {
        let source = [
            Value::from(sql_integer(status.size_bytes)),
            modified_ns(status).into(),
            sql_integer(status.inode).into(),
        ];
        self.with(|connection| {
            let [size, modified, inode] = &source;
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let same = format!(
                "SELECT count(*) FROM entry WHERE id = ? AND state BETWEEN {COPYING} AND {VERIFIED} AND size_bytes = ? \
                 AND modified_ns = ? AND inode = ?"
            );
            let same: i64 = change.query_row(&same, params![id, size, modified, inode], |row| row.get(0))?;
            if same == 0 {
                change.execute("DELETE FROM piece WHERE entry = ?", [id])?;
            }
            let set = format!(
                "UPDATE entry SET state = {COPYING}, size_bytes = ?2, modified_ns = ?3, inode = ?4 WHERE id = ?1"
            );
            change.execute(&set, params![id, size, modified, inode])?;
            let found = {
                let mut statement = change.prepare_cached("SELECT number, checksum FROM piece WHERE entry = ?")?;
                let rows = statement.query_map([id], |row| {
                    let (number, checksum): (i64, i64) = (row.get(0)?, row.get(1)?);
                    Ok((number.cast_unsigned(), checksum.cast_unsigned()))
                })?;
                rows.collect::<rusqlite::Result<_>>()?
            };
            change.commit()?;
            Ok(found)
        })
    }

    pub(crate) fn piece_is_copied(&self, id: i64, piece: u64, checksum: u64) -> Result<(), Error> {
        self.with(|connection| {
            let mut set = connection.prepare_cached(
                "INSERT OR REPLACE INTO piece (entry, number, checksum) VALUES (?, ?, ?)",
            )?;
            set.execute(params![id, sql_integer(piece), sql_integer(checksum)]).map(drop)
        })
    }

    pub(crate) fn forget_pieces(&self, id: i64) -> Result<(), Error> {
        self.with(|connection| {
            let mut delete = connection.prepare_cached("DELETE FROM piece WHERE entry = ?")?;
            delete.execute([id]).map(drop)
        })
    }
}
