//! Stores and lists failures and notes in the journal.
//! Keeps the last reason of each row. With a limit, it lists any failures, not those with the first paths.

use std::path::{Path, PathBuf};

use rusqlite::{Row, params};

use crate::error::Error;
use crate::journal::columns::{FAILED, PLANNED, bytes, path_at};
use crate::journal::database::Journal;
use crate::model::failure::Failure;
use crate::model::reason::Reason;

type PathOf = fn(&Row) -> rusqlite::Result<PathBuf>;

/// Queries for all kinds of failures: reason, remedy, errno, then the parts of the path.
fn queries() -> [(String, PathOf); 4] {
    [
        (
            format!(
                "SELECT e.reason, e.remedy, e.errno, d.source, coalesce(e.source_name, e.name) FROM entry e \
                 JOIN directory d ON d.id = e.directory WHERE e.state = {FAILED} LIMIT ?"
            ),
            |row| Ok(path_at(row, 3)?.join(path_at(row, 4)?)),
        ),
        (
            format!(
                "SELECT reason, remedy, errno, target FROM directory WHERE state = {FAILED} LIMIT ?"
            ),
            single_path,
        ),
        ("SELECT reason, remedy, errno, source FROM refusal LIMIT ?".into(), single_path),
        (
            "SELECT reason, NULL, errno, source FROM transfer WHERE reason IS NOT NULL LIMIT ?"
                .into(),
            single_path,
        ),
    ]
}

fn single_path(row: &Row) -> rusqlite::Result<PathBuf> {
    path_at(row, 3)
}

impl Journal {
    /// The first `limit` failures, sorted by path.
    pub fn failures(&self, limit: usize) -> Result<Vec<Failure>, Error> {
        self.with(|connection| {
            let mut found = Vec::new();
            for (query, path) in queries() {
                let mut statement = connection.prepare_cached(&query)?;
                let mut rows = statement.query(params![limit])?;
                while let Some(row) = rows.next()? {
                    found.push(Failure {
                        path: path(row)?,
                        reason: row.get::<_, Option<_>>(0)?.unwrap_or_default(),
                        remedy: row.get(1)?,
                        errno: row.get(2)?,
                    });
                }
            }
            found.sort_by(|a, b| a.path.cmp(&b.path));
            found.truncate(limit);
            Ok(found)
        })
    }

    /// Attributes that Forebay could not copy, and similar notes: text, how often, and the first path.
    pub fn notes(&self) -> Result<Vec<(String, u64, PathBuf)>, Error> {
        self.with(|connection| {
            let mut statement =
                connection.prepare_cached("SELECT text, count, example FROM note")?;
            let rows =
                statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, path_at(row, 2)?)))?;
            rows.collect()
        })
    }

    pub(crate) fn record_failed(&self, id: i64, reason: &Reason) -> Result<(), Error> {
        self.fail_in("entry", id, reason)
    }

    pub(crate) fn record_directory_failed(&self, id: i64, reason: &Reason) -> Result<(), Error> {
        self.fail_in("directory", id, reason)
    }

    /// Marks failed files and directories for a retry, and clears a request to stop.
    pub(crate) fn reset_failed(&self) -> Result<(), Error> {
        self.with(|connection| {
            connection.execute_batch(&format!(
                "BEGIN IMMEDIATE; \
                 UPDATE entry SET state = {PLANNED}, reason = NULL, remedy = NULL WHERE state = {FAILED}; \
                 UPDATE directory SET state = is_made, reason = NULL, remedy = NULL WHERE state = {FAILED}; \
                 DELETE FROM meta WHERE name = 'cancelled'; COMMIT;",
            ))
        })
    }

    fn fail_in(&self, table: &str, id: i64, reason: &Reason) -> Result<(), Error> {
        self.with(|connection| {
            let mut set = connection.prepare_cached(&format!(
                "UPDATE {table} SET state = {FAILED}, reason = ?2, remedy = ?3, errno = ?4 WHERE id = ?1"
            ))?;
            set.execute(params![id, reason.text, reason.remedy, reason.errno])
                .map(drop)
        })
    }

    /// Adds a note, or its number to the same note.
    pub fn add_note(&self, text: &str, count: u64, example: &Path) -> Result<(), Error> {
        self.with(|connection| {
            let set = "INSERT INTO note (text, count, example) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count";
            connection.execute(set, params![text, count, bytes(example)]).map(drop)
        })
    }
}
