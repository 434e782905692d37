//! Counts files by state. Caches the counts until the journal changes.
//! Changes of other processes count, too. Assumes that each change of a row goes through SQLite.

use parking_lot::MutexGuard;
use rusqlite::{Connection, TransactionBehavior};

use crate::error::Error;
use crate::journal::columns::{COPIED, COPYING, FAILED, PLACED, PLANNED};
use crate::journal::database::{Changes, Counted, Journal};
use crate::model::counts::{Counts, Number};
use crate::model::item::FILE;
use crate::model::state::State;

impl Journal {
    /// Counts all files by state. The time grows with the number of files, if the journal changed
    /// since the last count.
    pub fn counts(&self) -> Result<Counts, Error> {
        self.with(|connection| {
            let changes = changes(connection)?; // before the count: later changes cause a new count
            let counts = self.take_cached_or_count(connection, changes)?;
            *self.counted() = Some((changes, counts));
            Ok(counts)
        })
    }

    /// Marks all copied files as placed, except in the directories `but_in`: these Forebay checks
    /// again. Returns how many it marked.
    pub(crate) fn place_copied(&self, but_in: &[i64]) -> Result<Number, Error> {
        self.with(|connection| {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            {
                // The condition on `place` lets SQLite use the index.
                let mut set = change.prepare_cached(&format!(
                    "UPDATE entry SET state = {PLANNED} WHERE place = (SELECT place FROM directory WHERE id = ?1) \
                     AND directory = ?1 AND state = {COPIED}",
                ))?;
                for directory in but_in {
                    set.execute([directory])?;
                }
            }
            let mut counts = self.take_cached_or_count(&change, changes(&change)?)?;
            let copied = std::mem::take(&mut counts.by_state[State::Copied as usize]);
            if copied.files > 0 {
                let set = format!("UPDATE entry SET state = {PLACED} WHERE state = {COPIED}");
                change.execute(&set, [])?;
                let placed = &mut counts.by_state[State::Placed as usize];
                placed.files += copied.files;
                placed.bytes += copied.bytes;
            }
            // Inside the transaction, while no other process can write.
            let changes = changes(&change)?;
            change.commit()?;
            *self.counted() = Some((changes, counts));
            Ok(copied)
        })
    }

    /// Empties the cache; the caller must fill it again.
    fn take_cached_or_count(
        &self,
        connection: &Connection,
        now: Changes,
    ) -> rusqlite::Result<Counts> {
        match self.counted().take() {
            Some((then, counts)) if then == now => Ok(counts),
            _ => count(connection),
        }
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock()
    }
}

fn changes(connection: &Connection) -> rusqlite::Result<Changes> {
    let by_others = connection.pragma_query_value(None, "data_version", |row| row.get(0))?;
    Ok((by_others, connection.total_changes()))
}

fn count(connection: &Connection) -> rusqlite::Result<Counts> {
    let mut counts = Counts::default();
    // Add up here: SQLite would sort the rows first.
    let mut statement = connection.prepare_cached(&format!(
        "SELECT state, CASE WHEN link_of IS NULL AND kind = {FILE} THEN size_bytes ELSE 0 END FROM entry",
    ))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(counted) = counts.by_state.get_mut(row.get::<_, usize>(0)?) {
            counted.files += 1;
            counted.bytes = counted.bytes.saturating_add(row.get(1)?);
        }
    }
    counts.other_failures = connection.query_row(
        &format!(
            "SELECT (SELECT count(*) FROM refusal) + (SELECT count(*) FROM directory WHERE state = {FAILED}) \
             + (SELECT count(*) FROM transfer WHERE reason IS NOT NULL)"
        ),
        [],
        |row| row.get(0),
    )?;
    counts.open_directories = connection.query_row(
        &format!(
            "SELECT count(*) FROM directory WHERE state = {COPYING} OR (state = {PLANNED} AND is_of_tree)"
        ),
        [],
        |row| row.get(0),
    )?;
    Ok(counts)
}
