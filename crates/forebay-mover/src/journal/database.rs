//! The journal file: one SQLite database for each staging, with the state of each file.
//!
//! No decision depends on a clock. Row numbers are stable, and so are names of partial files.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use forebay_host::{files, filesystem};
use parking_lot::Mutex;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension, ToSql, params};

use crate::error::Error;

use crate::journal::file_names::{IN_MEMORY, LOCK_END, path_with_suffix};
use crate::journal::row_sums::{add_function, create_tables};
use crate::model::counts::Counts;

pub(crate) const SCHEMA: &str = include_str!("schema.sql");

/// `user_version` of the journals that this program can read.
const VERSION: i64 = 3;

/// The version before, whose rows have no checksums.
pub(crate) const VERSION_WITHOUT_SUMS: i64 = 2;

/// `application_id` of a journal, "FBay". It identifies other databases, which Forebay rejects.
const APPLICATION: i64 = 0x4642_6179;

/// How long Forebay waits for another process that writes into the journal.
const BUSY: Duration = Duration::from_secs(30);

/// Pages of 4 KiB in the write-ahead log before SQLite runs a checkpoint, which syncs twice.
const LOG_PAGES: i64 = 8192;

/// `data_version`, which changes with the writes of other connections, and the number of own changes.
pub(crate) type Changes = (i64, u64);

/// The last counts, and the changes up to which they are valid.
pub(crate) type Counted = Option<(Changes, Counts)>;

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    connection: Mutex<Connection>,
    path: PathBuf,
    pub(crate) counted: Mutex<Counted>,
    /// Its rows need no check.
    pub(crate) is_checked: AtomicBool,
}

impl Journal {
    /// Opens a journal, and creates it if it does not exist.
    ///
    /// # Errors
    /// Fails if it cannot be read or written, or is damaged.
    pub fn open(path: &Path) -> Result<Self, Error> {
        match files::status(path) {
            Err(error) if error.is_not_found() => {
                Self::make(path)?;
                let made = Self::open_existing(path)?;
                made.is_checked.store(true, Ordering::Relaxed);
                Ok(made)
            }
            found => found.map_err(Error::from).and_then(|_| Self::open_existing(path)),
        }
    }

    /// Opens an existing journal.
    pub fn open_existing(path: &Path) -> Result<Self, Error> {
        files::status(path)?;
        let opened = connect(path, OpenFlags::empty()).and_then(|connection| {
            let checked = check(&connection)?;
            Ok((connection, checked))
        });
        let (connection, checked) = opened.map_err(|error| Error::journal(path, error))?;
        if let Some(what) = checked {
            let path = path.to_owned();
            return Err(Error::Damaged { path, what });
        }
        Ok(Self::of(connection, path))
    }

    /// Creates a journal in the memory of this process. After a kill, staging restarts from the beginning.
    pub fn in_memory() -> Result<Self, Error> {
        let path = PathBuf::from(IN_MEMORY);
        let opened = Connection::open_in_memory().and_then(|connection| {
            add_function(&connection)?;
            connection.execute_batch(SCHEMA).map(|()| connection)
        });
        let connection = opened.map_err(|error| Error::journal(&path, error))?;
        Ok(Self::of(connection, &path))
    }

    pub(crate) fn of(connection: Connection, path: &Path) -> Self {
        Self {
            connection: Mutex::new(connection),
            path: path.to_owned(),
            counted: Mutex::default(),
            is_checked: AtomicBool::new(path == Path::new(IN_MEMORY)),
        }
    }

    /// Creates the journal under a temporary name and renames it: a file with the final name is complete.
    fn make(path: &Path) -> Result<(), Error> {
        let fresh = path_with_suffix(path, ".fresh");
        let clear = || remove_with_logs(&fresh);
        clear()?;
        remove_with_logs(path)?; // SQLite would apply a leftover log to the new journal
        let made = connect(&fresh, OpenFlags::SQLITE_OPEN_CREATE).and_then(|connection| {
            connection.pragma_update(None, "synchronous", "OFF")?;
            connection.pragma_update(None, "journal_mode", "MEMORY")?;
            connection.pragma_update(None, "application_id", APPLICATION)?;
            connection.pragma_update(None, "user_version", VERSION)?;
            connection.execute_batch("BEGIN")?;
            create_tables(&connection)?;
            connection.execute_batch("COMMIT")?;
            set_log(&connection).map(drop)
        });
        if let Err(error) = made {
            clear()?;
            return Err(Error::journal(path, error));
        }
        // Sync once at the end, instead of after each of SQLite's steps.
        let synced = files::open_to_read(&fresh)
            .and_then(|file| files::with_path(file.sync_all(), "sync", &fresh));
        if let Err(error) = synced {
            clear()?;
            return Err(error.into());
        }
        Ok(files::rename(&fresh, path)?)
    }

    /// Removes a journal with its lock and logs.
    pub fn remove(path: &Path) -> Result<(), Error> {
        remove_with_logs(path)?;
        remove_with_logs(&path_with_suffix(path, ".fresh"))?;
        Ok(files::remove_if_present(&path_with_suffix(path, LOCK_END))?)
    }

    /// Closes the journal and removes it with its lock and logs.
    pub fn discard(self) -> Result<(), Error> {
        // Skip SQLite's checkpoint on close.
        self.with(|connection| {
            let how = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
            connection.set_db_config(how, true).map(drop)
        })?;
        let path = self.path.clone();
        drop(self);
        Self::remove(&path)
    }

    /// The path of the journal.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Requests that a run of this journal stops or does not start. [`retry`](crate::retry) clears that.
    pub fn cancel(&self) -> Result<(), Error> {
        self.set_meta("cancelled", 1_i64)
    }

    /// Clears the request to stop.
    pub fn clear_cancel(&self) -> Result<(), Error> {
        self.with(|connection| {
            let delete = "DELETE FROM meta WHERE name = 'cancelled'";
            connection.execute(delete, []).map(drop)
        })
    }

    /// Was a stop requested?
    pub fn is_cancelled(&self) -> Result<bool, Error> {
        Ok(self.meta::<i64>("cancelled")?.unwrap_or(0) != 0)
    }

    pub(crate) fn is_planned(&self) -> Result<bool, Error> {
        Ok(self.meta::<i64>("planning")?.is_none())
    }

    /// Returns a value that the caller stored under this name.
    pub fn meta<T: rusqlite::types::FromSql>(&self, name: &str) -> Result<Option<T>, Error> {
        self.with(|connection| {
            let mut statement =
                connection.prepare_cached("SELECT value FROM meta WHERE name = ?")?;
            statement.query_row([name], |row| row.get(0)).optional()
        })
    }

    /// Stores a value under a name.
    pub fn set_meta(&self, name: &str, value: impl ToSql) -> Result<(), Error> {
        self.with(|connection| {
            let set = "INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)";
            connection.execute(set, params![name, value]).map(drop)
        })
    }

    pub(crate) fn with<T>(
        &self,
        act: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        // After a panic, SQLite rolls the transaction back.
        act(&mut self.connection.lock()).map_err(|error| Error::journal(&self.path, error))
    }
}

fn connect(path: &Path, more: OpenFlags) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    add_function(&connection)?;
    Ok(connection)
}

/// Configures the connection. Returns what is wrong with the journal, if anything.
fn check(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let number =
        |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    if number("application_id")? != APPLICATION {
        return Ok(Some("it is no journal of staging".to_owned()));
    }
    let version = number("user_version")?;
    if ![VERSION, VERSION_WITHOUT_SUMS].contains(&version) {
        return Ok(Some(format!("its version is {version}, ours {VERSION}")));
    }
    if version == VERSION_WITHOUT_SUMS {
        let has = "SELECT count(*) FROM pragma_table_info('entry') WHERE name = 'sum'";
        if connection.query_row(has, [], |row| row.get::<_, i64>(0))? == 0 {
            connection.execute_batch("ALTER TABLE entry ADD COLUMN sum INTEGER")?;
        }
    }
    // With a write-ahead log, a commit need not wait for the disk. If a power failure undoes it,
    // Forebay repeats the step.
    let synchronous = if set_log(connection)? { "NORMAL" } else { "FULL" };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", -16_000)?;
    let sound: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    Ok((sound != "ok").then_some(sound))
}

/// Enables a write-ahead log on local file systems: it needs shared memory. Returns whether it did.
fn set_log(connection: &Connection) -> rusqlite::Result<bool> {
    let path = connection.path();
    let is_local = path.is_some_and(|path| filesystem::is_single_machine(Path::new(path)));
    let mode = if is_local { "WAL" } else { "TRUNCATE" };
    connection.pragma_update_and_check(None, "journal_mode", mode, |_| Ok(()))?;
    Ok(is_local)
}

fn remove_with_logs(path: &Path) -> forebay_host::Result<()> {
    for end in ["", "-wal", "-shm", "-journal"] {
        files::remove_if_present(&path_with_suffix(path, end))?;
    }
    Ok(())
}
