//! Pending stage-out requests of programs. The list is next to the data, so that after a kill the
//! next process can complete them.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use forebay_host::{files, filesystem};
use rusqlite::{Connection, OpenFlags, Row, params};

use crate::Error;

/// File name of the list, next to the namespaces of the job's own allocation or in a directory of its own.
pub(crate) const NAME: &str = "requests.sqlite";

/// One transaction: space may not suffice for all tables.
const SCHEMA: &str = "
    BEGIN IMMEDIATE;
    CREATE TABLE IF NOT EXISTS open (
      inner BLOB NOT NULL, is_directory INTEGER NOT NULL, outer BLOB NOT NULL, PRIMARY KEY (inner, is_directory)
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS left_out (tree BLOB NOT NULL, inner BLOB NOT NULL, PRIMARY KEY (tree, inner)) WITHOUT ROWID;
    CREATE TRIGGER IF NOT EXISTS removed AFTER DELETE ON open WHEN old.is_directory
      BEGIN DELETE FROM left_out WHERE tree = old.inner; END;
    COMMIT;";

/// A pending request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingStageOut {
    /// The path in the burst buffer.
    pub inner: PathBuf,
    /// The destination on the file system.
    pub outer: PathBuf,
    /// True for a directory with all its contents.
    pub is_directory: bool,
    /// Excluded parts of the directory.
    pub left_out: BTreeSet<PathBuf>,
}

/// The request, or the part of one, that a program names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// A whole request.
    Whole {
        /// The path in the burst buffer.
        inner: PathBuf,
        /// True for a directory with all its contents.
        is_directory: bool,
    },
    /// A part of the requested directory `tree`.
    Part {
        /// The requested directory.
        tree: PathBuf,
        /// The path of the part in the burst buffer.
        inner: PathBuf,
    },
}

impl Selection {
    /// The burst-buffer path of the request.
    pub fn name(&self) -> &Path {
        match self {
            Self::Whole { inner, .. } => inner,
            Self::Part { tree, .. } => tree,
        }
    }
}

/// The pending requests of one job. The first request creates the file.
#[derive(Debug)]
pub struct PendingList {
    path: PathBuf,
    connection: Option<Connection>,
}

impl PendingList {
    /// The list of the allocation at `root`.
    pub fn in_allocation(root: &Path) -> Self {
        Self { path: root.join(NAME), connection: None }
    }

    /// Adds all requests, or none.
    ///
    /// # Errors
    /// An error with the errno that the program receives.
    pub fn add(&mut self, requests: impl Iterator<Item = PendingStageOut>) -> io::Result<()> {
        let mut requests = requests.peekable();
        if requests.peek().is_none() {
            return Ok(());
        }
        let path = self.path.clone();
        let connection = self.connection().map_err(|error| refused(&path, &error))?;
        let added = connection.transaction().and_then(|transaction| {
            for request in requests {
                let (inner, outer) = (bytes(&request.inner), bytes(&request.outer));
                let sql =
                    "INSERT OR REPLACE INTO open (inner, is_directory, outer) VALUES (?, ?, ?)";
                let mut insert = transaction.prepare_cached(sql)?;
                insert.execute(params![inner, request.is_directory, outer])?;
                if request.is_directory {
                    let mut delete =
                        transaction.prepare_cached("DELETE FROM left_out WHERE tree = ?")?;
                    delete.execute([inner])?;
                    let mut insert =
                        transaction.prepare_cached("INSERT INTO left_out VALUES (?, ?)")?;
                    for out in &request.left_out {
                        insert.execute([inner, bytes(out)])?;
                    }
                }
            }
            transaction.commit()
        });
        added.map_err(|error| refused(&path, &error))
    }

    /// Excludes a whole request, or a part of a requested directory.
    ///
    /// # Errors
    /// An error with the errno that the program receives.
    pub fn exclude(&mut self, meant: &Selection) -> io::Result<()> {
        let (tree, inner) = match meant {
            Selection::Whole { inner, is_directory } => return self.remove(inner, *is_directory),
            Selection::Part { tree, inner } => (bytes(tree), bytes(inner)),
        };
        let Some(connection) = &self.connection else {
            return Ok(());
        };
        let sql = "INSERT OR IGNORE INTO left_out SELECT inner, ?2 FROM open WHERE inner = ?1 AND is_directory";
        let added = connection.execute(sql, params![tree, inner]);
        added.map(drop).map_err(|error| refused(&self.path, &error))
    }

    /// Removes a request that is completed or excluded.
    ///
    /// # Errors
    /// An error with the errno that the program receives.
    pub fn remove(&mut self, inner: &Path, is_directory: bool) -> io::Result<()> {
        let Some(connection) = &self.connection else {
            return Ok(());
        };
        let sql = "DELETE FROM open WHERE inner = ? AND is_directory = ?";
        let removed = connection
            .prepare_cached(sql)
            .and_then(|mut delete| delete.execute(params![bytes(inner), is_directory]));
        removed.map(drop).map_err(|error| refused(&self.path, &error))
    }

    fn connection(&mut self) -> rusqlite::Result<&mut Connection> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                let connection = Connection::open(&self.path)?;
                // A write-ahead log needs shared memory.
                let is_local = self.path.parent().is_some_and(filesystem::is_single_machine);
                let modes = match is_local {
                    true => "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;",
                    false => "PRAGMA journal_mode = TRUNCATE; PRAGMA synchronous = FULL;",
                };
                if let Err(error) = connection.execute_batch(&format!("{modes} {SCHEMA}")) {
                    drop(connection);
                    // On a full file system an incomplete list could not be opened. It holds no request yet.
                    for end in ["-wal", "-shm", "-journal", ""] {
                        let mut path = self.path.clone().into_os_string();
                        path.push(end);
                        files::remove_file(Path::new(&path)).ok(); // it may not exist
                    }
                    return Err(error);
                }
                connection
            }
        };
        Ok(self.connection.insert(connection))
    }
}

/// The pending requests of the allocation at `root`.
pub fn load_pending(root: &Path) -> Result<Vec<PendingStageOut>, Error> {
    let path = root.join(NAME);
    load_file(&path).map_err(|error| Error::Requests { path, error })
}

/// True if the allocation at `root` has pending requests, or if the list cannot be read.
pub fn has_pending(root: &Path) -> bool {
    load_pending(root).map_or(true, |open| !open.is_empty())
}

/// The requests in this list; none if the file does not exist.
pub(crate) fn load_file(path: &Path) -> rusqlite::Result<Vec<PendingStageOut>> {
    if files::status_of_name(path).is_err_and(|error| error.is_not_found()) {
        return Ok(Vec::new());
    }
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    if !connection.table_exists(None, "open")? {
        return Ok(Vec::new()); // killed before the first request, or no space for the tables
    }
    let sql = "SELECT inner, is_directory, outer FROM open ORDER BY inner";
    let mut select = connection.prepare(sql)?;
    let rows = select.query_map([], open_of)?;
    let mut open: Vec<PendingStageOut> = rows.collect::<rusqlite::Result<_>>()?;
    if open.is_empty() {
        return Ok(open);
    }
    let mut select = connection.prepare("SELECT inner FROM left_out WHERE tree = ?")?;
    for tree in open.iter_mut().filter(|request| request.is_directory) {
        let left_out = select.query_map([bytes(&tree.inner)], |row| path_in(row, 0))?;
        tree.left_out = left_out.collect::<rusqlite::Result<_>>()?;
    }
    Ok(open)
}

/// Empties the list of the allocation at `root`.
pub fn clear_pending(root: &Path) -> Result<(), Error> {
    let path = root.join(NAME);
    if files::status_of_name(&path).is_err_and(|error| error.is_not_found()) {
        return Ok(());
    }
    let emptied = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_WRITE).and_then(
        |connection| match connection.table_exists(None, "open")? {
            true => connection.execute_batch("DELETE FROM open"),
            false => Ok(()),
        },
    );
    emptied.map_err(|error| Error::Requests { path, error })
}

fn open_of(row: &Row) -> rusqlite::Result<PendingStageOut> {
    Ok(PendingStageOut {
        inner: path_in(row, 0)?,
        outer: path_in(row, 2)?,
        is_directory: row.get(1)?,
        left_out: BTreeSet::new(),
    })
}

fn path_in(row: &Row, column: usize) -> rusqlite::Result<PathBuf> {
    let name: Vec<u8> = row.get(column)?;
    Ok(OsString::from_vec(name).into())
}

fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// With less free space SQLite cannot create its shared-memory file next to a list. It then reports
/// only that a call failed.
const SHARED_BYTES: u64 = 64 << 10;

fn refused(list: &Path, error: &rusqlite::Error) -> io::Error {
    let is_full = || {
        let space = list.parent().and_then(|root| filesystem::space(root).ok());
        space.is_some_and(|space| space.available_bytes < SHARED_BYTES)
    };
    io::Error::from_raw_os_error(match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DiskFull) => libc::ENOSPC,
        Some(rusqlite::ErrorCode::SystemIoFailure) if is_full() => libc::ENOSPC,
        _ => libc::EIO,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn list_without_tables_is_empty_and_can_be_cleared() {
        let root = tempfile::tempdir().unwrap();
        let connection = Connection::open(root.path().join(NAME)).unwrap();
        clear_pending(root.path()).unwrap();
        let sql = "CREATE TABLE open (inner BLOB, is_directory INTEGER, outer BLOB)";
        connection.execute_batch(sql).unwrap();
        assert_eq!(load_pending(root.path()).unwrap(), []);
        clear_pending(root.path()).unwrap();
    }

    #[test]
    fn list_without_space_is_not_created() {
        let root = tempfile::tempdir().unwrap();
        let connection = Connection::open(root.path().join(NAME)).unwrap();
        // Space for the first table, not for the second.
        connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA max_page_count = 2;").unwrap();
        assert!(connection.execute_batch(SCHEMA).is_err());
        drop(connection);
        let connection = Connection::open(root.path().join(NAME)).unwrap();
        assert!(!connection.table_exists(None, "open").unwrap());
    }
}
