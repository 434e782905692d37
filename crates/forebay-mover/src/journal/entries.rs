//! Reads and updates the rows of files and links.
//! Never reads or changes a file. A new column of `entry` must be added to the checksums in `row_sums.rs`, too.

use std::path::PathBuf;
use std::sync::LazyLock;

use rusqlite::{Row, TransactionBehavior, params};

use crate::error::Error;
use crate::journal::columns::{COPYING, PLACED, PLANNED, VERIFIED, path_at, sql_integer};
use crate::journal::database::Journal;
use crate::journal::row_sums::SUM_OF_NEW_STATE;
use crate::model::item::{HardLink, Item, Step};
use crate::model::state::State;

const ITEM: &str = "e.id, e.directory, e.kind, d.source, coalesce(e.source_name, e.name), d.target, e.name, \
                    e.size_bytes, e.state, d.is_of_tree, e.modified_ns, e.checksum";

pub(crate) fn item(row: &Row) -> rusqlite::Result<Item> {
    let state: i64 = row.get(8)?;
    Ok(Item {
        id: row.get(0)?,
        directory: row.get(1)?,
        kind: row.get(2)?,
        source: path_at(row, 3)?.join(path_at(row, 4)?),
        target: path_at(row, 5)?.join(path_at(row, 6)?),
        size_bytes: row.get::<_, i64>(7)?.cast_unsigned(),
        state: State::ALL
            .into_iter()
            .find(|known| *known as i64 == state)
            .unwrap_or(State::Planned),
        is_named: !row.get::<_, bool>(9)?,
        modified_ns: row.get(10)?,
        checksum: row.get::<_, Option<i64>>(11)?.map(i64::cast_unsigned),
        filled: None,
    })
}

static UPDATE_STATE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "UPDATE entry SET state = ?3, checksum = coalesce(?4, checksum), sum = {SUM_OF_NEW_STATE} \
         WHERE id BETWEEN ?1 AND ?2"
    )
});

impl Journal {
    /// The next files and links after `id` that still have to be copied.
    pub(crate) fn items_after(&self, id: i64, limit: usize) -> Result<Vec<Item>, Error> {
        self.with(|connection| {
            let mut statement = connection.prepare_cached(&format!(
                "SELECT {ITEM} FROM entry e JOIN directory d ON d.id = e.directory \
                 WHERE e.id > ? AND e.state < {PLACED} AND e.link_of IS NULL ORDER BY e.id LIMIT ?"
            ))?;
            statement.query_map(params![id, limit], item)?.collect()
        })
    }

    /// The next files and links after `id`, in any state.
    pub(crate) fn all_after(&self, id: i64, limit: usize) -> Result<Vec<Item>, Error> {
        self.with(|connection| {
            let mut statement = connection.prepare_cached(&format!(
                "SELECT {ITEM} FROM entry e JOIN directory d ON d.id = e.directory WHERE e.id > ? \
                 ORDER BY e.id LIMIT ?"
            ))?;
            statement.query_map(params![id, limit], item)?.collect()
        })
    }

    /// The next entries that are hard links to other entries.
    pub(crate) fn hard_links_after(&self, id: i64, limit: usize) -> Result<Vec<HardLink>, Error> {
        self.with(|connection| {
            let mut statement = connection.prepare_cached(&format!(
                "SELECT {ITEM}, fd.target, f.name, f.state FROM entry e JOIN directory d ON d.id = e.directory \
                 JOIN entry f ON f.id = e.link_of JOIN directory fd ON fd.id = f.directory \
                 WHERE e.id > ? AND e.state < {PLACED} ORDER BY e.id LIMIT ?"
            ))?;
            let rows = statement.query_map(params![id, limit], |row| {
                Ok(HardLink {
                    item: item(row)?,
                    first: path_at(row, 12)?.join(path_at(row, 13)?),
                    first_has_arrived: row.get::<_, i64>(14)? == PLACED,
                })
            })?;
            rows.collect()
        })
    }

    /// Files that can have a partial file: number and target.
    pub(crate) fn targets_in_progress(&self) -> Result<Vec<(i64, PathBuf)>, Error> {
        self.targets(&format!("e.state BETWEEN {COPYING} AND {VERIFIED}"))
    }

    /// Files that can have a partial file and are not in the last plan: number and target.
    pub(crate) fn outdated_targets(&self) -> Result<Vec<(i64, PathBuf)>, Error> {
        self.targets(&format!("e.generation < {}", self.generation()?))
    }

    fn targets(&self, which: &str) -> Result<Vec<(i64, PathBuf)>, Error> {
        self.with(|connection| {
            let mut statement = connection.prepare(&format!(
                "SELECT e.id, d.target, e.name FROM entry e JOIN directory d ON d.id = e.directory WHERE {which}",
            ))?;
            let rows = statement
                .query_map([], |row| Ok((row.get(0)?, path_at(row, 1)?.join(path_at(row, 2)?))))?;
            rows.collect()
        })
    }

    /// Deletes the files and directories that are not in the last plan.
    pub(crate) fn delete_outdated(&self) -> Result<(), Error> {
        let generation = self.generation()?;
        self.with(|connection| {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for table in ["entry", "directory"] {
                let delete = format!("DELETE FROM {table} WHERE generation < ?");
                change.execute(&delete, [generation])?;
            }
            change.commit()
        })
    }

    /// Files of one directory that can have a partial file: number and name.
    pub(crate) fn names_in_progress(&self, directory: i64) -> Result<Vec<(i64, PathBuf)>, Error> {
        self.with(|connection| {
            let mut statement = connection.prepare_cached(&format!(
                "SELECT id, name FROM entry WHERE place = (SELECT place FROM directory WHERE id = ?1) \
                 AND directory = ?1 AND state BETWEEN {COPYING} AND {VERIFIED}",
            ))?;
            let rows = statement.query_map([directory], |row| Ok((row.get(0)?, path_at(row, 1)?)))?;
            rows.collect()
        })
    }

    /// Marks these files, and hard links to them, as planned.
    pub(crate) fn requeue(&self, ids: &[i64]) -> Result<(), Error> {
        self.with(|connection| {
            let mut set = connection.prepare_cached(&format!(
                "UPDATE entry SET state = {PLANNED} WHERE id = ?1 OR link_of = ?1"
            ))?;
            ids.iter().try_for_each(|id| set.execute([id]).map(drop))
        })
    }

    /// Resets files in progress to planned, and deletes their pieces.
    pub(crate) fn reset_in_progress(&self) -> Result<(), Error> {
        self.with(|connection| {
            connection.execute_batch(&format!(
                "BEGIN IMMEDIATE; UPDATE entry SET state = {PLANNED} WHERE state BETWEEN {COPYING} AND {VERIFIED}; \
                 DELETE FROM piece; COMMIT;",
            ))
        })
    }

    /// Applies all steps in one transaction.
    pub(crate) fn apply_updates(&self, steps: &[Step]) -> Result<(), Error> {
        if steps.is_empty() {
            return Ok(());
        }
        self.with(|connection| {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            {
                let mut set = change.prepare_cached(&UPDATE_STATE)?;
                for alike in steps.chunk_by(Step::is_followed_alike) {
                    let (first, last) = (&alike[0], &alike[alike.len() - 1]);
                    let checksum = first.checksum.map(sql_integer);
                    set.execute(params![first.id, last.id, first.state as i64, checksum])?;
                }
            }
            change.commit()
        })
    }
}
