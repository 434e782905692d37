//! The requested transfers, and the generation of a plan.
//! Assumes that one process plans at a time: takes no lock. A new plan deletes notes and rejections of the last one.

use std::path::Path;

use rusqlite::{OptionalExtension, TransactionBehavior, params};

use crate::error::Error;
use crate::journal::columns::{COPYING, VERIFIED, bytes, path_at};
use crate::journal::database::Journal;
use crate::journal::destinations::refuse;
use crate::model::failure::Failure;
use crate::model::transfer::{Transfer, TransferKind};

impl Journal {
    /// The requested transfers that match the SQL condition.
    pub(crate) fn transfers(&self, which: &str) -> Result<Vec<Transfer>, Error> {
        self.with(|connection| {
            let query = format!("SELECT what, source, target FROM transfer {which} ORDER BY id");
            let mut statement = connection.prepare(&query)?;
            let rows = statement.query_map([], |row| {
                Ok(Transfer {
                    what: match row.get::<_, i64>(0)? {
                        0 => TransferKind::File,
                        1 => TransferKind::Directory,
                        _ => TransferKind::FileToName,
                    },
                    source: path_at(row, 1)?,
                    target: path_at(row, 2)?,
                })
            })?;
            rows.collect()
        })
    }

    pub(crate) fn generation(&self) -> Result<i64, Error> {
        Ok(self.meta("generation")?.unwrap_or(0))
    }

    /// Marks the journal as not planned. Returns whether it has no entries.
    pub fn begin_plan(&self) -> Result<bool, Error> {
        let generation = self.generation()? + 1;
        self.with(|connection| {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            change.execute_batch("DELETE FROM refusal; DELETE FROM note;")?;
            let set = "INSERT OR REPLACE INTO meta (name, value) VALUES ('generation', ?), ('planning', 1)";
            change.execute(set, [generation])?;
            let is_empty = "SELECT NOT EXISTS (SELECT 1 FROM entry)";
            let is_empty = change.query_row(is_empty, [], |row| row.get(0))?;
            change.commit()?;
            Ok(is_empty)
        })
    }

    /// Records the requested transfers, so that a restart can repeat an interrupted plan.
    pub fn record_request(&self, transfers: &[Transfer]) -> Result<(), Error> {
        let generation = self.generation()?;
        self.with(|connection| {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for transfer in transfers {
                keep_transfer(&change, transfer, generation, None)?;
            }
            change.commit()
        })
    }

    /// Ends a plan and deletes the rows that it does not contain. Those that may have a partial file stay for the run,
    /// which removes both.
    pub(crate) fn end_plan(&self) -> Result<(), Error> {
        let generation = self.generation()?;
        self.with(|connection| {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for (table, and) in [
                ("entry", format!("AND state NOT BETWEEN {COPYING} AND {VERIFIED}")),
                ("directory", "AND id NOT IN (SELECT directory FROM entry)".to_owned()),
                ("transfer", String::new()),
            ] {
                let delete = format!("DELETE FROM {table} WHERE generation < ? {and}");
                change.execute(&delete, [generation])?;
            }
            change.execute("DELETE FROM meta WHERE name = 'planning'", [])?;
            change.commit()
        })
    }

    pub(crate) fn keep_transfer(
        &self,
        transfer: &Transfer,
        generation: i64,
        error: Option<&Error>,
    ) -> Result<(), Error> {
        self.with(|connection| {
            connection.execute("DELETE FROM linked", [])?;
            keep_transfer(connection, transfer, generation, error)
        })
    }

    /// Whether [`retry`](crate::retry) plans everything again.
    pub fn plans_again(&self) -> Result<bool, Error> {
        Ok(!self.is_planned()? || self.has_refusals()?)
    }

    fn has_refusals(&self) -> Result<bool, Error> {
        self.with(|connection| {
            let query = "SELECT 1 FROM refusal LIMIT 1";
            Ok(connection.query_row(query, [], |_| Ok(())).optional()?.is_some())
        })
    }

    pub(crate) fn is_planned_directory(&self, target: &Path) -> Result<bool, Error> {
        self.with(|connection| {
            let query = "SELECT 1 FROM directory WHERE target = ? AND is_of_tree LIMIT 1";
            let found = connection.query_row(query, [bytes(target)], |_| Ok(()));
            Ok(found.optional()?.is_some())
        })
    }

    /// Records a failure of a source that cannot be scanned.
    pub fn refuse(&self, failure: &Failure) -> Result<(), Error> {
        self.with(|connection| refuse(connection, failure, false))
    }

    /// As [`Journal::refuse`], permanently: [`Journal::undelivered`] reports the source as unrecoverable.
    pub fn reject_permanently(&self, failure: &Failure) -> Result<(), Error> {
        self.with(|connection| refuse(connection, failure, true))
    }
}

pub(crate) fn keep_transfer(
    connection: &rusqlite::Connection,
    transfer: &Transfer,
    generation: i64,
    error: Option<&Error>,
) -> rusqlite::Result<()> {
    let what = match transfer.what {
        TransferKind::File => 0,
        TransferKind::Directory => 1,
        TransferKind::FileToName => 2,
    };
    let (source, target) = (bytes(&transfer.source), bytes(&transfer.target));
    let mut set = connection.prepare_cached(
        "INSERT INTO transfer (what, source, target, generation, reason, errno) VALUES (?, ?, ?, ?, ?, ?) \
         ON CONFLICT DO UPDATE SET generation = excluded.generation, reason = excluded.reason, \
         errno = excluded.errno",
    )?;
    let (reason, errno) = (error.map(ToString::to_string), error.and_then(Error::errno));
    set.execute(params![what, source, target, generation, reason, errno]).map(drop)
}
