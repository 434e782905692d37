//! The file of the state: opened, created, checked.
//! Assumes that the process is SlurmUser, and refuses others.
//! Never repairs a damaged file, or uses one of a newer version.

use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay_host::files::{self, Kind};
use forebay_host::{clock, system, users};
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior, params};

use forebay_site::{Error, Site};

const SCHEMA: &str = include_str!("schema.sql");
/// What later versions have more than version 1.
const SHARES: &str = include_str!("shares.sql");
/// What version 3 has more than version 2: before, the directories were known to be made when the job had started.
const MADE: &str = "ALTER TABLE share ADD COLUMN is_made INTEGER NOT NULL DEFAULT 0; \
                    UPDATE share SET is_made = (SELECT hosts > 0 FROM session WHERE id = share.session);";
/// `user_version` of the state that this program reads and writes.
const VERSION: i64 = 3;
/// `application_id`, "FBst". It identifies other databases, which Forebay rejects.
const APPLICATION: i64 = 0x4642_7374;
const NAME: &str = "state.sqlite";
/// How long Forebay waits for another process that writes the state.
const BUSY: Duration = Duration::from_secs(30);

/// The open state.
#[derive(Debug)]
pub struct Database {
    connection: Connection,
    path: PathBuf,
}

impl Database {
    /// Opens the state of a site; the first call makes it.
    ///
    /// # Errors
    /// If its directory is missing or not safe, or the file is damaged or of a newer version.
    pub fn open(site: &Site) -> Result<Self, Error> {
        check_directory(site)?;
        let path = site.state.join(NAME);
        if files::status_of_name(&path).is_err_and(|error| error.is_not_found()) {
            make(&path)?;
        }
        check_file(site, &path)?;
        let opened = connect(&path, OpenFlags::empty()).and_then(|mut connection| {
            let fault = fault(&connection)?;
            if fault.is_none() {
                update(&mut connection)?;
            }
            Ok((connection, fault))
        });
        match opened {
            Ok((connection, None)) => Ok(Self { connection, path }),
            Ok((_, Some(error))) => Err(error.of(&path)),
            Err(error) => Err(failed(&path, &error)),
        }
    }

    /// Runs `act` in one transaction, which excludes all other writers.
    ///
    /// # Errors
    /// That of `act`, which undoes the transaction, or that of the file.
    pub(super) fn change<T>(
        &mut self,
        act: impl FnOnce(&Transaction) -> Result<Result<T, Error>, rusqlite::Error>,
    ) -> Result<T, Error> {
        let path = &self.path;
        let begun = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let transaction = begun.map_err(|error| failed(path, &error))?;
        let value = act(&transaction).map_err(|error| failed(path, &error))??;
        transaction.commit().map_err(|error| failed(path, &error))?;
        Ok(value)
    }

    /// Reads.
    pub(super) fn read<T>(
        &self,
        act: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        act(&self.connection).map_err(|error| failed(&self.path, &error))
    }

    /// Names of pools that give nothing to new jobs.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn drained(&self) -> Result<Vec<String>, Error> {
        self.read(|connection| {
            let mut statement = connection.prepare("SELECT pool FROM drained ORDER BY pool")?;
            statement.query_map([], |row| row.get(0))?.collect()
        })
    }

    /// Drains a pool, or ends that.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn set_drained(&mut self, pool: &str, is_drained: bool) -> Result<(), Error> {
        self.change(|transaction| {
            let change = if is_drained {
                "INSERT OR IGNORE INTO drained (pool) VALUES (?)"
            } else {
                "DELETE FROM drained WHERE pool = ?"
            };
            transaction.execute(change, [pool])?;
            Ok(Ok(()))
        })
    }

    /// Remembers whether a node answered.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn note_node(&mut self, node: &str, is_online: bool) -> Result<(), Error> {
        let known = self.nodes()?;
        if known.iter().any(|(name, was_online)| name == node && *was_online == is_online) {
            return Ok(());
        }
        self.change(|transaction| {
            let set = "INSERT OR REPLACE INTO node (name, is_online, seen_unix_s) VALUES (?, ?, ?)";
            transaction.execute(set, params![node, is_online, clock::unix_s()])?;
            Ok(Ok(()))
        })
    }

    /// Nodes, and whether they answered the last time.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn nodes(&self) -> Result<Vec<(String, bool)>, Error> {
        self.read(|connection| {
            let mut statement =
                connection.prepare("SELECT name, is_online FROM node ORDER BY name")?;
            statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        })
    }
}

/// What is wrong with a file that can be read.
enum Fault {
    Foreign,
    Newer(i64),
    Damaged(String),
}

impl Fault {
    fn of(&self, path: &Path) -> Error {
        let shown = path.display();
        match self {
            Self::Foreign => Error::new(format!("{shown} is not the state of a site"))
                .with_hint("is the right directory configured as state?"),
            Self::Newer(version) => Error::new(format!(
                "the state {shown} is of version {version}, this program knows version {VERSION}"
            ))
            .with_hint("install the version of Forebay that wrote it, or a newer one"),
            Self::Damaged(what) => damaged(path, what),
        }
    }
}

fn damaged(path: &Path, what: &str) -> Error {
    let shown = path.display();
    Error::new(format!("the state {shown} is damaged: {what}")).with_hint(
        "restore a copy of it; without one, move it away and run forebay control reap, which names what jobs left",
    )
}

fn failed(path: &Path, error: &rusqlite::Error) -> Error {
    use rusqlite::ErrorCode::{
        CannotOpen, DatabaseBusy, DatabaseCorrupt, DiskFull, NotADatabase, ReadOnly,
    };
    let shown = path.display();
    match error.sqlite_error_code() {
        Some(DatabaseCorrupt | NotADatabase) => damaged(path, &error.to_string()),
        Some(DiskFull) => {
            Error::new(format!("the state {shown} cannot be written: its disk is full"))
                .with_hint("free space there")
        }
        Some(DatabaseBusy) => {
            let seconds = BUSY.as_secs();
            Error::new(format!("the state {shown} was in use by other processes for {seconds} s"))
                .with_hint("look for a stopped dw_wlm_cli or forebay control")
        }
        Some(CannotOpen | ReadOnly) => {
            Error::new(format!("the state {shown} cannot be used: {error}"))
                .with_hint("slurm_user must own it and its directory")
        }
        _ => Error::new(format!("the state {shown} cannot be used: {error}")),
    }
}

fn check_directory(site: &Site) -> Result<(), Error> {
    let (shown, name) = (site.state.display(), &site.slurm_user.name);
    let make = format!("as root: install -d -o {name} -m 700 {shown}");
    let found = match files::status(&site.state) {
        Err(error) if error.is_not_found() => {
            return Err(
                Error::new(format!("there is no directory {shown} for the state")).with_hint(make)
            );
        }
        found => found?,
    };
    if found.kind != Kind::Directory {
        return Err(Error::new(format!("{shown} is no directory")).with_hint(make));
    }
    if users::user_id() != site.slurm_user.user {
        let user = users::user_named(users::user_id());
        let hint = format!("{name} alone uses it; users see it with: scontrol show bbstat");
        return Err(Error::new(format!("the state in {shown} is not for {user}")).with_hint(hint));
    }
    if found.owner != site.slurm_user.user || found.mode & 0o077 != 0 {
        let why = format!("{shown} must belong to {name} and be closed to all others");
        return Err(
            Error::new(why).with_hint(format!("as root: chown {name} {shown}; chmod 700 {shown}"))
        );
    }
    Ok(())
}

/// Whoever can write the state can have files copied as any user. A copy that an administrator put back may belong to
/// anybody.
fn check_file(site: &Site, path: &Path) -> Result<(), Error> {
    let (shown, name) = (path.display(), &site.slurm_user.name);
    let found = files::status_of_name(path)?;
    if found.kind != Kind::File {
        return Err(Error::new(format!("the state {shown} is no regular file"))
            .with_hint("move it away, and put the state itself there"));
    }
    if found.owner != site.slurm_user.user || found.mode & 0o022 != 0 {
        let why = format!("the state {shown} must belong to {name} and be closed to other writers");
        return Err(
            Error::new(why).with_hint(format!("as root: chown {name} {shown}; chmod 600 {shown}"))
        );
    }
    Ok(())
}

/// A file with the final name is complete, so an empty one is damaged.
fn make(path: &Path) -> Result<(), Error> {
    let fresh = path.with_file_name(format!("{NAME}.{}.fresh", system::process_id()));
    files::remove_if_present(&fresh)?;
    let made = connect(&fresh, OpenFlags::SQLITE_OPEN_CREATE).and_then(|connection| {
        connection.pragma_update(None, "application_id", APPLICATION)?;
        connection.pragma_update(None, "user_version", VERSION)?;
        connection.execute_batch(&format!("BEGIN; {SCHEMA} {SHARES} COMMIT"))?;
        // Directories of an earlier, lost state have smaller numbers in their names.
        let first = "INSERT INTO sqlite_sequence (name, seq) VALUES ('session', ?)";
        connection.execute(first, [clock::unix_s()]).map(drop)
    });
    let placed = made.map_err(|error| failed(path, &error)).and_then(|()| {
        match files::make_hard_link(&fresh, path) {
            // Another process was faster.
            Err(error) if error.already_exists() => Ok(()),
            linked => linked.map_err(Error::from),
        }
    });
    for end in ["", "-journal"] {
        files::remove_if_present(
            &path.with_file_name(format!("{NAME}.{}.fresh{end}", system::process_id())),
        )?;
    }
    placed
}

fn connect(path: &Path, more: OpenFlags) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    // A rollback journal: the directory may be shared with a backup controller, where a write-ahead log does not work.
    connection.pragma_update_and_check(None, "journal_mode", "TRUNCATE", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    Ok(connection)
}

fn fault(connection: &Connection) -> rusqlite::Result<Option<Fault>> {
    let number =
        |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    if number("page_count")? == 0 {
        return Ok(Some(Fault::Damaged("it is empty".to_owned())));
    }
    if number("application_id")? != APPLICATION {
        return Ok(Some(Fault::Foreign));
    }
    let version = number("user_version")?;
    if version > VERSION {
        return Ok(Some(Fault::Newer(version)));
    }
    let sound: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    Ok((sound != "ok").then_some(Fault::Damaged(sound)))
}

/// Brings a state of an earlier version to this one.
fn update(connection: &mut Connection) -> rusqlite::Result<()> {
    let version = |connection: &Connection| {
        connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))
    };
    if version(connection)? == VERSION {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    match version(&transaction)? {
        1 => transaction.execute_batch(SHARES)?,
        2 => transaction.execute_batch(MADE)?,
        _ => return Ok(()), // another process was faster
    }
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}
