//! How many files are how far.

use std::sync::{MutexGuard, PoisonError};

use rusqlite::{Connection, TransactionBehavior};

use crate::journal::State;
use crate::{Error, Journal};

/// So many files and links, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Number {
    /// Files and links.
    pub files: u64,
    /// Bytes; a file with several names counts once.
    pub bytes: u64,
}

/// How many files are how far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// By [`State`], in its order.
    pub by_state: [Number; 6],
    /// Transfers, directories and things that cannot be staged at all.
    pub other_failures: u64,
    /// Directories that are not made yet, or have not got their modes and times.
    pub open_directories: u64,
}

impl Counts {
    /// Those in this state.
    #[must_use]
    pub fn of(&self, state: State) -> Number {
        self.by_state[state as usize]
    }

    fn sum(&self, states: impl Fn(State) -> bool) -> Number {
        let wanted = State::ALL.into_iter().filter(|state| states(*state));
        wanted.fold(Number::default(), |sum, state| Number {
            files: sum.files + self.of(state).files,
            bytes: sum.bytes + self.of(state).bytes,
        })
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> Number {
        self.sum(|_| true)
    }

    /// Those that are not where they belong yet, failed ones included.
    #[must_use]
    pub fn missing(&self) -> Number {
        self.sum(|state| state != State::Placed)
    }

    /// Those that can be moved yet.
    #[must_use]
    pub fn open(&self) -> Number {
        self.sum(|state| state < State::Placed)
    }

    /// Is there anything left that can be done yet?
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open().files > 0 || self.open_directories > 0
    }

    /// What can be done yet, in words.
    pub(crate) fn left(&self) -> String {
        let Number { files, bytes } = self.open();
        match (files, self.open_directories) {
            (0, directories) => format!("{directories} directories are not finished"),
            _ => format!("{files} files of {bytes} bytes have not arrived"),
        }
    }

    /// Has everything arrived that was asked for?
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.missing().files == 0 && self.other_failures == 0 && self.open_directories == 0
    }
}

/// Differs when others have changed something, and so often have we.
type Changes = (i64, u64);

/// What was counted last, and after which changes.
pub(crate) type Counted = Option<(Changes, Counts)>;

impl Journal {
    /// Counts all files by their state. Takes time with the number of files, if anything has changed since they
    /// were counted last.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub fn counts(&self) -> Result<Counts, Error> {
        self.with(|connection| {
            let changes = changes(connection)?; // first: what others change meanwhile is to be counted again
            let counts = self.known_or_counted(connection, changes)?;
            *self.counted() = Some((changes, counts));
            Ok(counts)
        })
    }

    /// All files that were copied are at their places, but those in these directories, of which that is not
    /// known: so many.
    pub(crate) fn place_copied(&self, but_in: &[i64]) -> Result<Number, Error> {
        self.with(|connection| {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            {
                // The place is for the index.
                let mut set = change.prepare_cached(
                    "UPDATE entry SET state = 0 WHERE place = (SELECT place FROM directory WHERE id = ?1) \
                     AND directory = ?1 AND state = 2",
                )?;
                for directory in but_in {
                    set.execute([directory])?;
                }
            }
            let mut counts = self.known_or_counted(&change, changes(&change)?)?;
            let copied = std::mem::take(&mut counts.by_state[State::Copied as usize]);
            if copied.files > 0 {
                change.execute("UPDATE entry SET state = 4 WHERE state = 2", [])?;
                let placed = &mut counts.by_state[State::Placed as usize];
                placed.files += copied.files;
                placed.bytes += copied.bytes;
            }
            // While nobody else can change anything.
            let changes = changes(&change)?;
            change.commit()?;
            *self.counted() = Some((changes, counts));
            Ok(copied)
        })
    }

    /// After this nothing is known, until whoever asked says what is.
    fn known_or_counted(&self, connection: &Connection, now: Changes) -> rusqlite::Result<Counts> {
        match self.counted().take() {
            Some((then, counts)) if then == now => Ok(counts),
            _ => count(connection),
        }
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn changes(connection: &Connection) -> rusqlite::Result<Changes> {
    let by_others = connection.pragma_query_value(None, "data_version", |row| row.get(0))?;
    Ok((by_others, connection.total_changes()))
}

fn count(connection: &Connection) -> rusqlite::Result<Counts> {
    let mut counts = Counts::default();
    // Summed up here: SQLite would sort them first.
    let mut statement = connection.prepare_cached(
        "SELECT state, CASE WHEN link_of IS NULL AND kind = 0 THEN size_bytes ELSE 0 END FROM entry",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(counted) = counts.by_state.get_mut(row.get::<_, usize>(0)?) {
            counted.files += 1;
            counted.bytes = counted.bytes.saturating_add(row.get(1)?);
        }
    }
    counts.other_failures = connection.query_row(
        "SELECT (SELECT count(*) FROM refusal) + (SELECT count(*) FROM directory WHERE state = 5) \
         + (SELECT count(*) FROM transfer WHERE reason IS NOT NULL)",
        [],
        |row| row.get(0),
    )?;
    counts.open_directories = connection.query_row(
        "SELECT count(*) FROM directory WHERE state = 1 OR (state = 0 AND is_of_tree)",
        [],
        |row| row.get(0),
    )?;
    Ok(counts)
}
