//! The journal file: one SQLite database for each staging, which records the state of each file.
//!
//! No decision looks at a clock. Row numbers are stable, and so are the names of partial files made of them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay_host::{files, filesystem};
use parking_lot::{Mutex, MutexGuard};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension, ToSql, params};

use crate::error::Error;

use crate::journal::file_names::{IN_MEMORY, LOCK_END, named_beside};
use crate::model::already_present::AlreadyPresent;
use crate::model::counts::Counts;
use crate::model::version::Stamp;

const SCHEMA: &str = include_str!("schema.sql");

/// `user_version` of a journal that this program can read.
const VERSION: i64 = 2;

/// `application_id`, so that other databases are not taken for journals: "FBay".
const APPLICATION: i64 = 0x4642_6179;

/// How long we wait for another process that writes into the journal.
const BUSY: Duration = Duration::from_secs(30);

/// Pages of 4 KiB in the write-ahead log before they are put in order, which syncs twice.
const LOG_PAGES: i64 = 8192;

/// Differs when others have changed something, and so often have we.
pub(crate) type Changes = (i64, u64);

/// What was counted last, and after which changes.
pub(crate) type Counted = Option<(Changes, Counts)>;

/// A journal that is open.
#[derive(Debug)]
pub struct Journal {
    connection: Mutex<Connection>,
    path: PathBuf,
    pub(crate) counted: Mutex<Counted>,
    /// This process plans it from its begin and compares what it finds with what is there: what is the same is
    /// written down as copied.
    compared: Mutex<Option<AlreadyPresent>>,
}

impl Journal {
    /// Opens a journal; it is made if it is not there.
    ///
    /// # Errors
    /// If it cannot be read or written, or is damaged.
    pub fn open(path: &Path) -> Result<Self, Error> {
        match files::status(path) {
            Err(error) if error.is_not_found() => Self::make(path)?,
            found => drop(found?),
        }
        Self::open_existing(path)
    }

    /// Opens a journal that is there.
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

    /// A journal in the memory of this process: a staging that is killed begins again.
    pub fn in_memory() -> Result<Self, Error> {
        let path = PathBuf::from(IN_MEMORY);
        let opened = Connection::open_in_memory()
            .and_then(|connection| connection.execute_batch(SCHEMA).map(|()| connection));
        let connection = opened.map_err(|error| Error::journal(&path, error))?;
        Ok(Self::of(connection, &path))
    }

    pub(crate) fn of(connection: Connection, path: &Path) -> Self {
        Self {
            connection: Mutex::new(connection),
            path: path.to_owned(),
            counted: Mutex::default(),
            compared: Mutex::default(),
        }
    }

    /// Under another name first: a file under the final name is a whole journal.
    fn make(path: &Path) -> Result<(), Error> {
        let fresh = named_beside(path, ".fresh");
        let clear = || remove_with_logs(&fresh);
        clear()?;
        remove_with_logs(path)?; // SQLite would take the log of another journal for its own
        let made = connect(&fresh, OpenFlags::SQLITE_OPEN_CREATE).and_then(|connection| {
            connection.pragma_update(None, "synchronous", "OFF")?;
            connection.pragma_update(None, "journal_mode", "MEMORY")?;
            connection.pragma_update(None, "application_id", APPLICATION)?;
            connection.pragma_update(None, "user_version", VERSION)?;
            connection.execute_batch(&format!("BEGIN; {SCHEMA} COMMIT;"))?;
            set_log(&connection).map(drop)
        });
        if let Err(error) = made {
            clear()?;
            return Err(Error::journal(path, error));
        }
        // Once, where SQLite would for each step of that.
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
        remove_with_logs(&named_beside(path, ".fresh"))?;
        Ok(files::remove_if_present(&named_beside(path, LOCK_END))?)
    }

    /// Closes it and removes it with its lock and logs.
    pub fn discard(self) -> Result<(), Error> {
        // What the log holds is not put in order for it.
        self.with(|connection| {
            let how = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
            connection.set_db_config(how, true).map(drop)
        })?;
        let path = self.path.clone();
        drop(self);
        Self::remove(&path)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Asks whoever carries it out to stop, or not to begin. [`Journal::retry`] takes that back.
    pub fn cancel(&self) -> Result<(), Error> {
        self.set_meta("cancelled", 1_i64)
    }

    /// Takes back that it was asked to stop.
    pub fn clear_cancel(&self) -> Result<(), Error> {
        self.with(|connection| {
            let delete = "DELETE FROM meta WHERE name = 'cancelled'";
            connection.execute(delete, []).map(drop)
        })
    }

    /// Was it asked to stop?
    pub fn is_cancelled(&self) -> Result<bool, Error> {
        Ok(self.meta::<i64>("cancelled")?.unwrap_or(0) != 0)
    }

    pub(crate) fn is_planned(&self) -> Result<bool, Error> {
        Ok(self.meta::<i64>("planning")?.is_none())
    }

    /// A value that the journal keeps for its owner.
    pub fn meta<T: rusqlite::types::FromSql>(&self, name: &str) -> Result<Option<T>, Error> {
        self.with(|connection| {
            let mut statement =
                connection.prepare_cached("SELECT value FROM meta WHERE name = ?")?;
            statement.query_row([name], |row| row.get(0)).optional()
        })
    }

    /// Keeps a value.
    pub fn set_meta(&self, name: &str, value: impl ToSql) -> Result<(), Error> {
        self.with(|connection| {
            let set = "INSERT OR REPLACE INTO meta VALUES (?, ?)";
            connection.execute(set, params![name, value]).map(drop)
        })
    }

    pub(crate) fn with<T>(
        &self,
        act: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        // SQLite rolls back what a panic interrupts.
        act(&mut self.connection.lock()).map_err(|error| Error::journal(&self.path, error))
    }

    /// From now on what is found is compared with what is there, if nothing was planned yet.
    pub(crate) fn begin_comparing(&self, is_empty: bool) {
        *self.comparing() = is_empty.then(AlreadyPresent::default);
    }

    pub(crate) fn compares(&self) -> bool {
        self.comparing().is_some()
    }

    pub(crate) fn has_compared(&self, directory: i64, target: &Path, stamp: Stamp) {
        if let Some(compared) = &mut *self.comparing() {
            let target = || target.to_owned();
            let file_system = compared.file_systems.entry(stamp.device);
            file_system.or_insert_with(target);
            compared.directories.entry(directory).or_insert(stamp);
        }
    }

    /// Where things were compared, once: later they may be others.
    pub(crate) fn take_compared(&self) -> Option<AlreadyPresent> {
        self.comparing().take()
    }

    fn comparing(&self) -> MutexGuard<'_, Option<AlreadyPresent>> {
        self.compared.lock()
    }
}

fn connect(path: &Path, more: OpenFlags) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    Ok(connection)
}

/// Makes it ready for use; or says what is wrong with it.
fn check(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let number =
        |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    if number("application_id")? != APPLICATION {
        return Ok(Some("it is no journal of staging".to_owned()));
    }
    let version = number("user_version")?;
    if version != VERSION {
        return Ok(Some(format!("its version is {version}, ours {VERSION}")));
    }
    // With a write-ahead log, a commit that a power cut takes away is a step that is done again, so it need not
    // wait for the disk.
    let synchronous = if set_log(connection)? { "NORMAL" } else { "FULL" };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", -16_000)?;
    let sound: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    Ok((sound != "ok").then_some(sound))
}

/// A write-ahead log where it can be had: it needs memory that all processes share. Says whether it is one.
fn set_log(connection: &Connection) -> rusqlite::Result<bool> {
    let path = connection.path();
    let is_local = path.is_some_and(|path| filesystem::is_single_machine(Path::new(path)));
    let mode = if is_local { "WAL" } else { "TRUNCATE" };
    connection.pragma_update_and_check(None, "journal_mode", mode, |_| Ok(()))?;
    Ok(is_local)
}

fn remove_with_logs(path: &Path) -> forebay_host::Result<()> {
    for end in ["", "-wal", "-shm", "-journal"] {
        files::remove_if_present(&named_beside(path, end))?;
    }
    Ok(())
}
