//! Transfers that were asked for, and the generation of a plan.

use std::path::Path;

use rusqlite::{OptionalExtension, params};

use crate::error::Error;
use crate::journal::columns::{bytes, path_at};
use crate::journal::database::Journal;
use crate::journal::destinations::refuse;
use crate::model::failure::Failure;
use crate::model::transfer::{Transfer, What};

impl Journal {
    /// What was asked for.
    pub(crate) fn transfers(&self, which: &str) -> Result<Vec<Transfer>, Error> {
        self.with(|connection| {
            let query = format!("SELECT what, source, target FROM transfer {which} ORDER BY id");
            let mut statement = connection.prepare(&query)?;
            let rows = statement.query_map([], |row| {
                Ok(Transfer {
                    what: match row.get::<_, i64>(0)? {
                        0 => What::File,
                        1 => What::Directory,
                        _ => What::FileToName,
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

    pub(crate) fn has_refusals(&self) -> Result<bool, Error> {
        self.with(|connection| {
            let query = "SELECT 1 FROM refusal LIMIT 1";
            Ok(connection
                .query_row(query, [], |_| Ok(()))
                .optional()?
                .is_some())
        })
    }

    pub(crate) fn is_planned_directory(&self, target: &Path) -> Result<bool, Error> {
        self.with(|connection| {
            let query = "SELECT 1 FROM directory WHERE target = ? AND is_of_tree LIMIT 1";
            let found = connection.query_row(query, [bytes(target)], |_| Ok(()));
            Ok(found.optional()?.is_some())
        })
    }

    /// Keeps what cannot even be looked for.
    pub fn refuse(&self, failure: &Failure) -> Result<(), Error> {
        self.with(|connection| refuse(connection, failure, false))
    }

    /// The same, of what this staging cannot save whatever becomes of it: [`Journal::missing`] says so.
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
        What::File => 0,
        What::Directory => 1,
        What::FileToName => 2,
    };
    let (source, target) = (bytes(&transfer.source), bytes(&transfer.target));
    let mut set = connection.prepare_cached(
        "INSERT INTO transfer (what, source, target, generation, reason, errno) VALUES (?, ?, ?, ?, ?, ?) \
         ON CONFLICT DO UPDATE SET generation = excluded.generation, reason = excluded.reason, \
         errno = excluded.errno",
    )?;
    let (reason, errno) = (error.map(ToString::to_string), error.and_then(Error::errno));
    set.execute(params![what, source, target, generation, reason, errno])
        .map(drop)
}
