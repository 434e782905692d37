//! Reads and updates the rows of directories.
//! Assumes that parents have smaller numbers than children. Never creates or changes a directory itself.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rusqlite::{OptionalExtension, Row, TransactionBehavior, params};

use crate::error::Error;
use crate::journal::columns::{COPIED, COPYING, FAILED, PLACED, PLANNED, VERIFIED, bytes, path_at};
use crate::journal::database::Journal;
use crate::model::item::Directory;
use crate::model::state::State;

/// Selects unfinished directories.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unfinished {
    /// All that can hold leftovers of a killed run, whatever the journal says.
    Any,
    /// Only those with unfinished or failed files. The query is fast: the user waits for the stop.
    InProgress,
    /// Those that are not in the last plan.
    Outdated,
}

impl Journal {
    pub(crate) fn reopen_filled(&self) -> Result<bool, Error> {
        self.with(|connection| {
            let set = format!(
                "UPDATE directory SET state = {COPYING} WHERE is_made AND state = {PLACED} \
                 AND id IN (SELECT directory FROM entry WHERE state < {PLACED})"
            );
            connection.execute(&set, []).map(|_| true)
        })
    }

    /// Reopens the finished parents that Forebay created. Returns number and target of each.
    pub(crate) fn reopen_parents<'a>(
        &self,
        directories: impl Iterator<Item = &'a Directory>,
    ) -> Result<Vec<(i64, PathBuf)>, Error> {
        let parents = |one: &Directory| {
            let parent = |path: &Path| path.parent().map(|path| bytes(path).to_vec());
            Some((parent(&one.source)?, parent(&one.target)?))
        };
        let parents: BTreeSet<_> = directories.filter_map(parents).collect();
        self.with(|connection| {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let mut reopened = Vec::new();
            for (source, target) in parents {
                let mut set = change.prepare_cached(&format!(
                    "UPDATE directory SET state = {COPYING} WHERE source = ? AND target = ? AND is_made \
                     AND state = {PLACED} RETURNING id, target",
                ))?;
                let row = |row: &Row| Ok((row.get(0)?, path_at(row, 1)?));
                reopened.extend(set.query_row(params![source, target], row).optional()?);
            }
            change.commit()?;
            Ok(reopened)
        })
    }

    /// Number and target of each unfinished directory of a tree.
    pub(crate) fn unfinished_trees(&self, which: Unfinished) -> Result<Vec<(i64, PathBuf)>, Error> {
        let which = match which {
            Unfinished::Any => format!("state <> {PLACED}"),
            Unfinished::Outdated => format!("generation < {}", self.generation()?),
            Unfinished::InProgress => format!(
                "state IN ({COPYING}, {FAILED}) AND id IN (SELECT directory FROM entry \
                 WHERE state BETWEEN {COPYING} AND {VERIFIED} OR state = {FAILED})"
            ),
        };
        self.with(|connection| {
            let query = format!("SELECT id, target FROM directory WHERE is_of_tree AND {which}");
            let mut select = connection.prepare(&query)?;
            let rows = select.query_map([], |row| Ok((row.get(0)?, path_at(row, 1)?)))?;
            rows.collect()
        })
    }

    /// Returns `None` if the plan no longer has the directory.
    pub(crate) fn target_of_directory(&self, id: i64) -> Result<Option<PathBuf>, Error> {
        self.with(|connection| {
            let mut select =
                connection.prepare_cached("SELECT target FROM directory WHERE id = ?")?;
            select.query_row([id], |row| path_at(row, 0)).optional()
        })
    }

    /// The next directories of trees that are not created or not finished, parents first.
    pub(crate) fn directories_after(&self, id: i64, limit: usize) -> Result<Vec<Directory>, Error> {
        let which = format!("id > ? AND state < {COPIED} AND is_of_tree ORDER BY id");
        self.directories(&which, id, limit)
    }

    /// The next directories of trees that existed before or are finished.
    pub(crate) fn directories_placed_after(
        &self,
        id: i64,
        limit: usize,
    ) -> Result<Vec<Directory>, Error> {
        let which = format!("id > ? AND state = {PLACED} AND is_of_tree ORDER BY id");
        self.directories(&which, id, limit)
    }

    /// Are there directories of trees that the run has not reached yet?
    pub(crate) fn has_unmade_directories(&self) -> Result<bool, Error> {
        self.with(|connection| {
            let query = format!(
                "SELECT EXISTS (SELECT 1 FROM directory WHERE state = {PLANNED} AND is_of_tree)"
            );
            connection.query_row(&query, [], |row| row.get(0))
        })
    }

    /// The directories before `id` that Forebay created and did not finish, children first.
    pub(crate) fn directories_made_before(
        &self,
        id: i64,
        limit: usize,
    ) -> Result<Vec<Directory>, Error> {
        let which = format!("id < ? AND state = {COPYING} ORDER BY id DESC");
        self.directories(&which, id, limit)
    }

    fn directories(&self, which: &str, id: i64, limit: usize) -> Result<Vec<Directory>, Error> {
        self.with(|connection| {
            let query = format!(
                "SELECT id, source, target, state = {COPYING} FROM directory WHERE {which} LIMIT ?"
            );
            let mut statement = connection.prepare_cached(&query)?;
            let rows = statement.query_map(params![id, limit], |row| {
                Ok(Directory {
                    id: row.get(0)?,
                    source: path_at(row, 1)?,
                    target: path_at(row, 2)?,
                    is_begun: row.get(3)?,
                })
            })?;
            rows.collect()
        })
    }

    /// Also sets `is_made`: `Planned` means that Forebay did not create the directory, `Copying` that it did.
    pub(crate) fn set_directory_state(&self, ids: &[i64], state: State) -> Result<(), Error> {
        self.with(|connection| {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            {
                let mut set = change.prepare_cached(&format!(
                    "UPDATE directory SET state = ?2, is_made = CASE WHEN ?2 < {COPIED} THEN ?2 ELSE is_made END \
                     WHERE id = ?1",
                ))?;
                for id in ids {
                    set.execute(params![id, state as i64])?;
                }
            }
            change.commit()
        })
    }
}
