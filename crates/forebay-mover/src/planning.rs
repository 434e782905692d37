//! Looking through sources, into the journal. What is found is written in short transactions, so that
//! memory does not grow with the number of files, and nobody waits long for the journal.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use forebay_host::files::{self, Kind, Status};
use rusqlite::{OptionalExtension, Transaction, TransactionBehavior, params};

use crate::item::{FILE, LINK, modified_ns};
use crate::journal::{State, path_at, path_of};
use crate::{Error, Failure, Journal, Transfer, What};

/// Rows of one transaction.
const ROWS: usize = 4096;

/// Told of each file and directory that is written down, in portions: how many. Says whether to go on.
pub type Planned<'a> = &'a dyn Fn(u64) -> bool;

/// Something found in a source.
enum Row {
    Directory {
        source: PathBuf,
        target: PathBuf,
        place: PathBuf,
        is_of_tree: bool,
    },
    Entry {
        /// Number of its directory among those of this transfer.
        directory: usize,
        name: OsString,
        source_name: Option<OsString>,
        status: Status,
    },
    Refusal(Failure),
}

/// One transfer that is being looked through.
struct Looking<'a> {
    journal: &'a Journal,
    rows: Vec<Row>,
    /// Directories that were found.
    directories: usize,
    /// Number in the journal, and number of its place, of each that was written down.
    written: Vec<(i64, i64)>,
    generation: i64,
    on_planned: Planned<'a>,
    /// Which targets are wanted.
    is_wanted: &'a dyn Fn(&Path) -> bool,
}

impl Journal {
    /// Plans all of this and nothing else: what was planned before and is not found again is dropped;
    /// what has arrived and did not change since is not moved again.
    ///
    /// # Errors
    /// If a source is missing or not what the transfer says; what is wrong further down is among
    /// [`Journal::failures`]. If the journal cannot be written.
    pub fn plan(&self, transfers: &[Transfer]) -> Result<(), Error> {
        self.begin_plan()?;
        for transfer in transfers {
            self.add(transfer)?;
        }
        self.end_plan()
    }

    /// Begins a plan, to which transfers are added one by one.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub fn begin_plan(&self) -> Result<(), Error> {
        let generation = self.generation()? + 1;
        self.with(|connection| {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            change.execute_batch("DELETE FROM refusal; DELETE FROM note;")?;
            let set = "INSERT OR REPLACE INTO meta VALUES ('generation', ?), ('planning', 1)";
            change.execute(set, [generation])?;
            change.commit()
        })
    }

    /// Writes down what will be added, so that a plan that is interrupted can be made again.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub fn ask_for(&self, transfers: &[Transfer]) -> Result<(), Error> {
        let generation = self.generation()?;
        self.with(|connection| {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for transfer in transfers {
                keep_transfer(&change, transfer, generation, None)?;
            }
            change.commit()
        })
    }

    /// Ends a plan: what is not in it is not to be staged.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub fn end_plan(&self) -> Result<(), Error> {
        let generation = self.generation()?;
        self.with(|connection| {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for table in ["entry", "directory", "transfer"] {
                let delete = format!("DELETE FROM {table} WHERE generation < ?");
                change.execute(&delete, [generation])?;
            }
            change.execute("DELETE FROM meta WHERE name = 'planning'", [])?;
            change.commit()
        })
    }

    /// Adds a transfer, looking through its whole source. What it names is moved if it has not arrived, or
    /// has changed since.
    ///
    /// # Errors
    /// As [`Journal::plan`].
    pub fn add(&self, transfer: &Transfer) -> Result<(), Error> {
        self.add_watched(transfer, &|_| true)
    }

    /// As [`Journal::add`], told of how it goes on.
    ///
    /// # Errors
    /// As [`Journal::plan`], and [`Error::PlanInterrupted`] if told to stop.
    pub fn add_watched(&self, transfer: &Transfer, on_planned: Planned) -> Result<(), Error> {
        self.look_into(transfer, on_planned, &|_| true)
    }

    /// As [`Journal::add`], but for files and links with other targets than these.
    ///
    /// # Errors
    /// As [`Journal::plan`].
    pub fn add_only(
        &self,
        transfer: &Transfer,
        is_wanted: &dyn Fn(&Path) -> bool,
    ) -> Result<(), Error> {
        self.look_into(transfer, &|_| true, is_wanted)
    }

    fn look_into(
        &self,
        transfer: &Transfer,
        on_planned: Planned,
        is_wanted: &dyn Fn(&Path) -> bool,
    ) -> Result<(), Error> {
        let generation = self.generation()?;
        self.keep_transfer(transfer, generation, None)?;
        let mut looking = Looking {
            journal: self,
            rows: Vec::new(),
            directories: 0,
            written: Vec::new(),
            generation,
            on_planned,
            is_wanted,
        };
        looking.look(transfer)?;
        looking.write()
    }

    /// As [`Journal::add_watched`]; if the source itself is at fault, that is kept as a failure.
    ///
    /// # Errors
    /// If the journal cannot be written, or it was told to stop.
    pub fn add_or_note(&self, transfer: &Transfer, on_planned: Planned) -> Result<(), Error> {
        match self.add_watched(transfer, on_planned) {
            Err(
                error @ (Error::Host(_)
                | Error::NoSource(_)
                | Error::NotAFile(_)
                | Error::NotADirectory(_)
                | Error::IntoItself { .. }),
            ) => {
                let generation = self.generation()?;
                self.keep_transfer(transfer, generation, Some(&error.to_string()))
            }
            added => added,
        }
    }

    /// Keeps what cannot even be looked for.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub fn refuse(&self, failure: &Failure) -> Result<(), Error> {
        self.with(|connection| refuse(connection, failure))
    }

    /// Looks again through what could not be looked through; or through everything if that was
    /// interrupted, or found what cannot be staged, which may be mended.
    pub(crate) fn look_again(&self) -> Result<(), Error> {
        if !self.is_planned()? || self.has_refusals()? {
            let transfers = self.transfers("")?;
            self.begin_plan()?;
            for transfer in &transfers {
                self.add_or_note(transfer, &|_| true)?;
            }
            return self.end_plan();
        }
        let failed = self.transfers("WHERE reason IS NOT NULL")?;
        failed
            .iter()
            .try_for_each(|transfer| self.add_or_note(transfer, &|_| true))
    }

    fn has_refusals(&self) -> Result<bool, Error> {
        self.with(|connection| {
            let query = "SELECT 1 FROM refusal LIMIT 1";
            Ok(connection
                .query_row(query, [], |_| Ok(()))
                .optional()?
                .is_some())
        })
    }

    /// What was asked for.
    fn transfers(&self, which: &str) -> Result<Vec<Transfer>, Error> {
        self.with(|connection| {
            let query = format!("SELECT what, source, target FROM transfer {which} ORDER BY id");
            let mut statement = connection.prepare(&query)?;
            let rows = statement.query_map([], |row| {
                Ok(Transfer {
                    what: if row.get::<_, i64>(0)? == 0 {
                        What::File
                    } else {
                        What::Directory
                    },
                    source: path_at(row, 1)?,
                    target: path_at(row, 2)?,
                })
            })?;
            rows.collect()
        })
    }

    fn generation(&self) -> Result<i64, Error> {
        Ok(self.meta("generation")?.unwrap_or(0))
    }

    fn keep_transfer(
        &self,
        transfer: &Transfer,
        generation: i64,
        reason: Option<&str>,
    ) -> Result<(), Error> {
        self.with(|connection| {
            connection.execute("DELETE FROM linked", [])?;
            keep_transfer(connection, transfer, generation, reason)
        })
    }

    fn is_planned_directory(&self, target: &Path) -> Result<bool, Error> {
        self.with(|connection| {
            let query = "SELECT 1 FROM directory WHERE target = ? AND is_of_tree LIMIT 1";
            let found = connection.query_row(query, [bytes(target)], |_| Ok(()));
            Ok(found.optional()?.is_some())
        })
    }
}

impl Looking<'_> {
    fn look(&mut self, transfer: &Transfer) -> Result<(), Error> {
        let status = match files::status(&transfer.source) {
            Err(error) if error.is_not_found() => {
                return Err(Error::NoSource(transfer.source.clone()));
            }
            found => found?,
        };
        match (transfer.what, status.kind) {
            (What::File, Kind::File) => self.look_at_file(transfer, status),
            (What::File, _) => Err(Error::NotAFile(transfer.source.clone())),
            (What::Directory, Kind::Directory) => self.look_through(transfer),
            (What::Directory, _) => Err(Error::NotADirectory(transfer.source.clone())),
        }
    }

    fn look_at_file(&mut self, transfer: &Transfer, status: Status) -> Result<(), Error> {
        let target = self.target_of_file(transfer)?;
        if !(self.is_wanted)(&target) {
            return Ok(());
        }
        let parent = |path: &Path| path.parent().unwrap_or(Path::new("/")).to_owned();
        let directory = self.directory(parent(&transfer.source), parent(&target), false);
        let name = |path: &Path| path.file_name().unwrap_or_default().to_owned();
        let (name, source_name) = (name(&target), name(&transfer.source));
        self.push(Row::Entry {
            directory,
            source_name: (name != source_name).then_some(source_name),
            name,
            status,
        })
    }

    fn target_of_file(&self, transfer: &Transfer) -> Result<PathBuf, Error> {
        let target = &transfer.target;
        let is_directory = bytes(target).ends_with(b"/")
            || files::status(target).is_ok_and(|s| s.kind == Kind::Directory)
            || self.journal.is_planned_directory(target)?;
        Ok(match transfer.source.file_name() {
            Some(name) if is_directory => target.join(name),
            _ => target.clone(),
        })
    }

    fn look_through(&mut self, transfer: &Transfer) -> Result<(), Error> {
        let real = files::real_path(&transfer.source)?;
        if resolve(&transfer.target).starts_with(&real) {
            return Err(Error::IntoItself {
                source_directory: transfer.source.clone(),
                target: transfer.target.clone(),
            });
        }
        let (source, target) = (transfer.source.clone(), transfer.target.clone());
        let top = self.directory(source.clone(), target.clone(), true);
        let mut open = vec![(top, source, target)];
        while let Some((directory, source, target)) = open.pop() {
            let names = match files::names_in(&source) {
                Ok(names) => names,
                Err(error) => {
                    self.refuse(&source, &error)?;
                    continue;
                }
            };
            for name in names {
                let path = source.join(&name);
                match files::status_of_name(&path) {
                    Ok(status) if status.kind == Kind::Directory => {
                        let target = target.join(&name);
                        let below = self.directory(path.clone(), target.clone(), true);
                        open.push((below, path, target));
                    }
                    Ok(_) if !(self.is_wanted)(&target.join(&name)) => {}
                    Ok(status) => self.push(Row::Entry {
                        directory,
                        name,
                        source_name: None,
                        status,
                    })?,
                    Err(error) => self.refuse(&path, &error)?,
                }
            }
        }
        Ok(())
    }

    /// Returns its number among those of this transfer.
    fn directory(&mut self, source: PathBuf, target: PathBuf, is_of_tree: bool) -> usize {
        let place = resolve(&target);
        // One spelling: a slash at the end makes no other directory.
        let (source, target) = (source.components().collect(), target.components().collect());
        self.rows.push(Row::Directory {
            source,
            target,
            place,
            is_of_tree,
        });
        self.directories += 1;
        self.directories - 1
    }

    fn refuse(&mut self, path: &Path, error: &forebay_host::Error) -> Result<(), Error> {
        self.push(Row::Refusal(Failure {
            path: path.to_owned(),
            reason: error.to_string(),
            remedy: crate::item::remedy(error),
        }))
    }

    fn push(&mut self, row: Row) -> Result<(), Error> {
        self.rows.push(row);
        if self.rows.len() < ROWS {
            return Ok(());
        }
        self.write()
    }

    fn write(&mut self) -> Result<(), Error> {
        let rows = std::mem::take(&mut self.rows);
        let (generation, written) = (self.generation, &mut self.written);
        self.journal.with(|connection| {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for row in &rows {
                match row {
                    Row::Directory { .. } => {
                        written.push(write_directory(&change, generation, row)?)
                    }
                    Row::Entry { directory, .. } => {
                        write_entry(&change, generation, written[*directory], row)?;
                    }
                    Row::Refusal(failure) => refuse(&change, failure)?,
                }
            }
            change.commit()
        })?;
        if (self.on_planned)(rows.len() as u64) {
            Ok(())
        } else {
            Err(Error::PlanInterrupted)
        }
    }
}

fn keep_transfer(
    connection: &rusqlite::Connection,
    transfer: &Transfer,
    generation: i64,
    reason: Option<&str>,
) -> rusqlite::Result<()> {
    let what = i64::from(transfer.what == What::Directory);
    let (source, target) = (bytes(&transfer.source), bytes(&transfer.target));
    let mut set = connection.prepare_cached(
        "INSERT INTO transfer (what, source, target, generation, reason) VALUES (?, ?, ?, ?, ?) \
         ON CONFLICT DO UPDATE SET generation = excluded.generation, reason = excluded.reason",
    )?;
    set.execute(params![what, source, target, generation, reason])
        .map(drop)
}

pub(crate) fn refuse(connection: &rusqlite::Connection, failure: &Failure) -> rusqlite::Result<()> {
    let mut set = connection.prepare_cached("INSERT OR REPLACE INTO refusal VALUES (?, ?, ?)")?;
    set.execute(params![
        bytes(&failure.path),
        failure.reason,
        failure.remedy
    ])
    .map(drop)
}

/// Returns its number and that of its place.
fn write_directory(
    change: &Transaction,
    generation: i64,
    row: &Row,
) -> rusqlite::Result<(i64, i64)> {
    let Row::Directory {
        source,
        target,
        place,
        is_of_tree,
    } = row
    else {
        return Ok((0, 0));
    };
    let mut set = change.prepare_cached(
        "INSERT INTO place (path) VALUES (?) ON CONFLICT DO UPDATE SET path = path RETURNING id",
    )?;
    let place: i64 = set.query_row([bytes(place)], |row| row.get(0))?;
    // A directory that was made and not finished yet stays so.
    let mut set = change.prepare_cached(
        "INSERT INTO directory (source, target, place, is_of_tree, state, generation) VALUES (?, ?, ?, ?, 0, ?) \
         ON CONFLICT DO UPDATE SET generation = excluded.generation, \
         is_of_tree = max(is_of_tree, excluded.is_of_tree), \
         state = CASE WHEN is_made AND state = 4 THEN 1 WHEN state IN (4, 5) THEN 0 ELSE state END, reason = NULL, remedy = NULL RETURNING id",
    )?;
    let values = params![bytes(source), bytes(target), place, is_of_tree, generation];
    Ok((set.query_row(values, |row| row.get(0))?, place))
}

fn write_entry(
    change: &Transaction,
    generation: i64,
    (directory, place): (i64, i64),
    row: &Row,
) -> rusqlite::Result<()> {
    let Row::Entry {
        name,
        source_name,
        status,
        ..
    } = row
    else {
        return Ok(());
    };
    if status.kind == Kind::Other {
        let reason = "it is a fifo, socket or device, which cannot be staged";
        let path = source_path(change, directory, source_name.as_ref().unwrap_or(name))?;
        return refuse(change, &Failure::new(path, reason.to_owned()));
    }
    let kind = if status.kind == Kind::Link {
        LINK
    } else {
        FILE
    };
    let source_name = source_name.as_ref().map(|name| name.as_bytes());
    // What has arrived, or is on its way, and did not change since, stays as far as it is. What failed is
    // tried again.
    let mut set = change.prepare_cached(
        "INSERT INTO entry (directory, place, name, source_name, kind, state, generation, size_bytes, modified_ns, inode) \
         VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6, ?7, ?8, ?9) ON CONFLICT DO UPDATE SET \
         state = CASE WHEN state < 5 AND directory = ?1 AND source_name IS ?4 AND kind = ?5 \
           AND size_bytes = ?7 AND modified_ns = ?8 AND inode = ?9 THEN state ELSE 0 END, \
         directory = ?1, source_name = ?4, kind = ?5, generation = ?6, size_bytes = ?7, modified_ns = ?8, inode = ?9, \
         link_of = NULL, reason = NULL, remedy = NULL \
         WHERE generation < ?6 OR (directory = ?1 AND source_name IS ?4) RETURNING id",
    )?;
    let values = params![
        directory,
        place,
        name.as_bytes(),
        source_name,
        kind,
        generation,
        number(status.size_bytes),
        modified_ns(status),
        number(status.inode)
    ];
    let id: Option<i64> = set.query_row(values, |row| row.get(0)).optional()?;
    let Some(id) = id else {
        return refuse_second(change, directory, place, row);
    };
    if kind == FILE && status.links > 1 {
        write_link(change, id, status)?;
    }
    Ok(())
}

/// Two things on their way to one place: one of them would be lost.
fn refuse_second(
    change: &Transaction,
    directory: i64,
    place: i64,
    row: &Row,
) -> rusqlite::Result<()> {
    let Row::Entry {
        name, source_name, ..
    } = row
    else {
        return Ok(());
    };
    let query = "SELECT d.target, d.source, coalesce(e.source_name, e.name) FROM entry e \
                 JOIN directory d ON d.id = e.directory WHERE e.place = ? AND e.name = ?";
    let (target, other) = change.query_row(query, params![place, name.as_bytes()], |row| {
        Ok((
            path_at(row, 0)?.join(name),
            path_at(row, 1)?.join(path_at(row, 2)?),
        ))
    })?;
    let (target, other) = (target.display(), other.display());
    let failure = Failure {
        path: source_path(change, directory, source_name.as_ref().unwrap_or(name))?,
        reason: format!("it would go to {target}, where {other} goes already"),
        remedy: Some("give one of them another destination".to_owned()),
    };
    refuse(change, &failure)
}

/// A file with several names: the first one that is found stands for it.
fn write_link(change: &Transaction, id: i64, status: &Status) -> rusqlite::Result<()> {
    let file = params![number(status.device), number(status.inode), id];
    let mut set = change.prepare_cached("INSERT OR IGNORE INTO linked VALUES (?, ?, ?)")?;
    if set.execute(file)? == 1 {
        return Ok(());
    }
    let mut set = change.prepare_cached(
        "UPDATE entry SET link_of = (SELECT entry FROM linked WHERE device = ?1 AND inode = ?2) \
         WHERE id = ?3 AND id <> (SELECT entry FROM linked WHERE device = ?1 AND inode = ?2)",
    )?;
    set.execute(file).map(drop)
}

fn source_path(change: &Transaction, directory: i64, name: &OsString) -> rusqlite::Result<PathBuf> {
    let query = "SELECT source FROM directory WHERE id = ?";
    let source: Vec<u8> = change.query_row(query, [directory], |row| row.get(0))?;
    Ok(path_of(&source).join(name))
}

/// The real path of the nearest ancestor that exists, and the rest as written.
pub(crate) fn resolve(directory: &Path) -> PathBuf {
    files::final_path(directory).unwrap_or_else(|_| directory.to_owned())
}

pub(crate) fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// SQLite's numbers have a sign; only whether two are the same matters.
#[allow(clippy::cast_possible_wrap)]
pub(crate) fn number(value: u64) -> i64 {
    value as i64
}

const _: () = assert!(
    State::Placed as i64 == 4 && State::Failed as i64 == 5,
    "as the statements say"
);
