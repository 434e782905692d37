//! Inserts and updates the rows of a plan.
//! Assumes that a directory comes before its files. Never plans two sources for one destination: rejects the second.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use forebay_host::files::{Kind, Status};
use rusqlite::{OptionalExtension, ToSql, Transaction, TransactionBehavior, params};

use crate::error::Error;
use crate::journal::columns::{
    COPIED, COPYING, FAILED, PLACED, PLANNED, VERIFIED, bytes, path_at, path_of, sql_integer,
};
use crate::journal::database::Journal;
use crate::journal::destinations::refuse;
use crate::journal::row_sums::SUM_OF_NEW_ENTRY;
use crate::model::failure::Failure;
use crate::model::item::{FILE, LINK};
use crate::model::scan_entry::ScanEntry;
use crate::model::version::{MemoryDevices, Stamp, modified_ns};

impl Journal {
    /// Writes rows of a plan in one transaction. Appends the number of each directory and of its
    /// place to `written`. Returns the directories whose targets were compared, with their stamps.
    pub(crate) fn write_found<'a>(
        &self,
        generation: i64,
        written: &mut Vec<(i64, i64)>,
        rows: &'a [ScanEntry],
    ) -> Result<Vec<(i64, &'a Path, Stamp)>, Error> {
        let mut compared = Vec::new();
        let memory = MemoryDevices::default();
        self.with(|connection| {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for row in rows {
                match row {
                    ScanEntry::Directory { existing, target, .. } => {
                        let numbers = write_directory(&change, generation, row)?;
                        written.push(numbers);
                        compared.extend(existing.map(|stamp| (numbers.0, target.as_path(), stamp)));
                    }
                    ScanEntry::Entry { directory, .. } => {
                        write_entry(&change, generation, written[*directory], row, &memory)?;
                    }
                    ScanEntry::Refusal(failure) => refuse(&change, failure, false)?,
                }
            }
            change.commit()
        })?;
        Ok(compared)
    }
}

/// Returns the numbers of the directory and of its place.
fn write_directory(
    change: &Transaction,
    generation: i64,
    row: &ScanEntry,
) -> rusqlite::Result<(i64, i64)> {
    let ScanEntry::Directory { source, target, place, is_of_tree, .. } = row else {
        return Ok((0, 0));
    };
    let mut set = change.prepare_cached(
        "INSERT INTO place (path) VALUES (?) ON CONFLICT DO UPDATE SET path = path RETURNING id",
    )?;
    let place: i64 = set.query_row([bytes(place)], |row| row.get(0))?;
    // Keep the state of a directory in progress. Reopen a finished or failed one.
    let mut set = change.prepare_cached(&format!(
        "INSERT INTO directory (source, target, place, is_of_tree, state, generation) VALUES (?, ?, ?, ?, {PLANNED}, ?) \
         ON CONFLICT DO UPDATE SET generation = excluded.generation, \
         is_of_tree = max(is_of_tree, excluded.is_of_tree), \
         state = CASE WHEN state >= {PLACED} THEN is_made ELSE state END, reason = NULL, remedy = NULL RETURNING id",
    ))?;
    let values = params![bytes(source), bytes(target), place, is_of_tree, generation];
    Ok((set.query_row(values, |row| row.get(0))?, place))
}

static INSERT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "INSERT INTO entry \
    (directory, place, name, source_name, kind, state, generation, size_bytes, modified_ns, inode, sum) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?10, ?6, ?7, ?8, ?9, {SUM_OF_NEW_ENTRY}) ON CONFLICT DO NOTHING"
    )
});

/// Keeps the state of unchanged entries that are copied or in progress. Changed ones in progress may have a partial file,
/// and all others become planned. `?11`: the source is in memory, so nobody knows whether it is unchanged.
fn update() -> String {
    format!(
        "UPDATE entry SET \
         state = CASE WHEN state < {FAILED} AND directory = ?1 AND source_name IS ?4 AND kind = ?5 \
         AND size_bytes = ?7 AND modified_ns = ?8 AND inode = ?9 AND NOT ?11 THEN state \
         WHEN state BETWEEN {COPYING} AND {VERIFIED} THEN {COPYING} ELSE ?10 END, \
         directory = ?1, source_name = ?4, kind = ?5, generation = ?6, size_bytes = ?7, modified_ns = ?8, inode = ?9, \
         link_of = NULL, reason = NULL, remedy = NULL \
         WHERE place = ?2 AND name = ?3 AND (generation < ?6 OR (directory = ?1 AND source_name IS ?4)) RETURNING id"
    )
}

fn write_entry(
    change: &Transaction,
    generation: i64,
    (directory, place): (i64, i64),
    row: &ScanEntry,
    memory: &MemoryDevices,
) -> rusqlite::Result<()> {
    let ScanEntry::Entry { name, source_name, status, is_there, .. } = row else {
        return Ok(());
    };
    if status.kind == Kind::Other {
        let reason = "it is a fifo, socket or device, which cannot be staged";
        let path = source_path(change, directory, source_name.as_ref().unwrap_or(name).as_bytes())?;
        let failure =
            Failure { errno: Some(libc::EINVAL), ..Failure::new(path, reason.to_owned()) };
        return refuse(change, &failure, false);
    }
    let kind = if status.kind == Kind::Link { LINK } else { FILE };
    let source_name = source_name.as_ref().map(|name| name.as_bytes());
    let state = if *is_there { COPIED } else { PLANNED };
    let values: &[&dyn ToSql] = params![
        directory,
        place,
        name.as_bytes(),
        source_name,
        kind,
        generation,
        sql_integer(status.size_bytes),
        modified_ns(status),
        sql_integer(status.inode),
        state
    ];
    // Nearly all entries are new, and a plain insert is the fastest.
    if change.prepare_cached(&INSERT)?.execute(values)? == 1 {
        if kind == FILE && status.links > 1 {
            write_link(change, change.last_insert_rowid(), status)?;
        }
        return Ok(());
    }
    let source = source_path(change, directory, source_name.unwrap_or(name.as_bytes()))?;
    let is_in_memory = kind == FILE && memory.has(&source, status);
    let mut set = change.prepare_cached(&update())?;
    let values: Vec<_> = values.iter().copied().chain([&is_in_memory as &dyn ToSql]).collect();
    let id: Option<i64> = set.query_row(&*values, |row| row.get(0)).optional()?;
    let Some(id) = id else {
        return refuse_second(change, directory, place, row);
    };
    if kind == FILE && status.links > 1 {
        write_link(change, id, status)?;
    }
    Ok(())
}

/// Rejects a second source for the same destination: one of them would be lost.
fn refuse_second(
    change: &Transaction,
    directory: i64,
    place: i64,
    row: &ScanEntry,
) -> rusqlite::Result<()> {
    let ScanEntry::Entry { name, source_name, .. } = row else {
        return Ok(());
    };
    let query = "SELECT d.target, d.source, coalesce(e.source_name, e.name) FROM entry e \
                 JOIN directory d ON d.id = e.directory WHERE e.place = ? AND e.name = ?";
    let (target, other) = change.query_row(query, params![place, name.as_bytes()], |row| {
        Ok((path_at(row, 0)?.join(name), path_at(row, 1)?.join(path_at(row, 2)?)))
    })?;
    let (target, other) =
        (forebay_host::files::printable(&target), forebay_host::files::printable(&other));
    let failure = Failure {
        path: source_path(change, directory, source_name.as_ref().unwrap_or(name).as_bytes())?,
        reason: format!("it would go to {target}, where {other} goes already"),
        remedy: Some("give one of them another destination".to_owned()),
        errno: Some(libc::EEXIST),
    };
    refuse(change, &failure, true)
}

/// Links further names of a file to the first one found.
fn write_link(change: &Transaction, id: i64, status: &Status) -> rusqlite::Result<()> {
    let file = params![sql_integer(status.device), sql_integer(status.inode), id];
    let mut set = change
        .prepare_cached("INSERT OR IGNORE INTO linked (device, inode, entry) VALUES (?, ?, ?)")?;
    if set.execute(file)? == 1 {
        return Ok(());
    }
    let mut set = change.prepare_cached(
        "UPDATE entry SET link_of = (SELECT entry FROM linked WHERE device = ?1 AND inode = ?2) \
         WHERE id = ?3 AND id <> (SELECT entry FROM linked WHERE device = ?1 AND inode = ?2)",
    )?;
    set.execute(file).map(drop)
}

fn source_path(change: &Transaction, directory: i64, name: &[u8]) -> rusqlite::Result<PathBuf> {
    let query = "SELECT source FROM directory WHERE id = ?";
    let source: Vec<u8> = change.query_row(query, [directory], |row| row.get(0))?;
    Ok(path_of(&source).join(path_of(name)))
}
