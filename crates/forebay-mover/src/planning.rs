//! Looking through sources, into the journal. What is found is written in short transactions, so that
//! memory does not grow with the number of files, and nobody waits long for the journal.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::Builder;

use forebay_host::files::{self, Kind, Status};
use rusqlite::{OptionalExtension, Transaction, TransactionBehavior, params};

use crate::engine::{LOOK, Owner, started};
use crate::item::{FILE, LINK, modified_ns};
use crate::journal::{State, path_at, path_of};
use crate::looking::{IsWanted, Row, compare, look_through, resolve};
use crate::places::refuse;
use crate::{Error, Failure, Journal, Transfer, What};

/// Told of each file and directory that is written down, in portions: how many, often none. Says whether to go on;
/// whoever cancels the journal stops it, too.
pub type Planned<'a> = &'a dyn Fn(u64) -> bool;

/// Portions that are found before they are written down.
const AHEAD: usize = 4;

/// One transfer that is being written down.
struct Writing<'a> {
    journal: &'a Journal,
    /// Number in the journal, and number of its place, of each directory.
    written: Vec<(i64, i64)>,
    generation: i64,
    on_planned: Planned<'a>,
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
            let is_planned = "SELECT EXISTS (SELECT 1 FROM entry)";
            let is_planned: bool = change.query_row(is_planned, [], |row| row.get(0))?;
            change.commit()?;
            self.begin_comparing(!is_planned);
            Ok(())
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

    /// As [`Journal::add_watched`], but for files and links with other targets than these.
    ///
    /// # Errors
    /// As [`Journal::add_watched`].
    pub fn add_only(
        &self,
        transfer: &Transfer,
        on_planned: Planned,
        is_wanted: IsWanted,
    ) -> Result<(), Error> {
        self.look_into(transfer, on_planned, is_wanted)
    }

    fn look_into(
        &self,
        transfer: &Transfer,
        on_planned: Planned,
        is_wanted: IsWanted,
    ) -> Result<(), Error> {
        let generation = self.generation()?;
        self.keep_transfer(transfer, generation, None)?;
        let mut writing = Writing {
            journal: self,
            written: Vec::new(),
            generation,
            on_planned,
        };
        writing.plan(transfer, is_wanted)
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
                self.keep_transfer(transfer, generation, Some(&error))
            }
            added => added,
        }
    }

    /// Keeps what cannot even be looked for.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub fn refuse(&self, failure: &Failure) -> Result<(), Error> {
        self.with(|connection| refuse(connection, failure, false))
    }

    /// The same, of what this staging cannot save whatever becomes of it: [`Journal::missing`] says so.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub fn refuse_for_good(&self, failure: &Failure) -> Result<(), Error> {
        self.with(|connection| refuse(connection, failure, true))
    }

    /// Looks again through what could not be looked through; or through everything if that was
    /// interrupted, or found what cannot be staged, which may be mended.
    pub(crate) fn look_again(&self, on_planned: Planned) -> Result<(), Error> {
        if !self.is_planned()? || self.has_refusals()? {
            let transfers = self.transfers("")?;
            self.begin_plan()?;
            for transfer in &transfers {
                self.add_or_note(transfer, on_planned)?;
            }
            return self.end_plan();
        }
        let failed = self.transfers("WHERE reason IS NOT NULL")?;
        if failed.is_empty() {
            return Ok(());
        }
        // One that is looked through in part must not be taken for a whole one by whoever comes after us.
        self.set_meta("planning", 1_i64)?;
        for transfer in &failed {
            self.add_or_note(transfer, on_planned)?;
        }
        self.end_plan()
    }

    /// So much was planned: is nobody against more of it?
    pub(crate) fn goes_on(&self, on_planned: Planned, planned: u64) -> Result<(), Error> {
        if on_planned(planned) && !self.is_cancelled()? {
            return Ok(());
        }
        Err(Error::PlanInterrupted(self.path().to_owned()))
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
    pub(crate) fn transfers(&self, which: &str) -> Result<Vec<Transfer>, Error> {
        self.with(|connection| {
            let query = format!("SELECT what, source, target FROM transfer {which} ORDER BY id");
            let mut statement = connection.prepare(&query)?;
            let rows = statement.query_map([], |row| {
                Ok(Transfer {
                    what: match row.get::<_, i64>(0)? {
                        0 => What::File,
                        1 => What::Directory,
                        _ => What::FileAs,
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
        error: Option<&Error>,
    ) -> Result<(), Error> {
        self.with(|connection| {
            connection.execute("DELETE FROM linked", [])?;
            keep_transfer(connection, transfer, generation, error)
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

impl Writing<'_> {
    fn plan(&mut self, transfer: &Transfer, is_wanted: IsWanted) -> Result<(), Error> {
        let status = match files::status(&transfer.source) {
            Err(error) if error.is_not_found() => {
                return Err(Error::NoSource(transfer.source.clone()));
            }
            found => found?,
        };
        match (transfer.what, status.kind) {
            (What::File | What::FileAs, Kind::File) => self.plan_file(transfer, status, is_wanted),
            (What::File | What::FileAs, _) => Err(Error::NotAFile(transfer.source.clone())),
            (What::Directory, Kind::Directory) => self.plan_tree(transfer, is_wanted),
            (What::Directory, _) => Err(Error::NotADirectory(transfer.source.clone())),
        }
    }

    fn plan_file(
        &mut self,
        transfer: &Transfer,
        status: Status,
        is_wanted: IsWanted,
    ) -> Result<(), Error> {
        let target = self.target_of_file(transfer)?;
        if !is_wanted(&target) {
            return Ok(());
        }
        let parent = |path: &Path| path.parent().unwrap_or(Path::new("/")).to_owned();
        let directory = Row::directory(&parent(&transfer.source), &parent(&target), false);
        let name = |path: &Path| path.file_name().unwrap_or_default().to_owned();
        let (name, source_name) = (name(&target), name(&transfer.source));
        let entry = Row::Entry {
            directory: 0,
            source_name: (name != source_name).then_some(source_name),
            name,
            status,
            is_there: false,
        };
        self.write(&[directory, entry])
    }

    fn target_of_file(&self, transfer: &Transfer) -> Result<PathBuf, Error> {
        let target = &transfer.target;
        let is_directory = transfer.what == What::File
            && (bytes(target).ends_with(b"/")
                || files::status(target).is_ok_and(|s| s.kind == Kind::Directory)
                || self.journal.is_planned_directory(target)?);
        Ok(match transfer.source.file_name() {
            Some(name) if is_directory => target.join(name),
            _ => target.clone(),
        })
    }

    /// One thread looks, one compares with what is there, this one writes down.
    fn plan_tree(&mut self, transfer: &Transfer, is_wanted: IsWanted) -> Result<(), Error> {
        let real = files::real_path(&transfer.source)?;
        if resolve(&transfer.target).starts_with(&real) {
            return Err(Error::IntoItself {
                source_directory: transfer.source.clone(),
                target: transfer.target.clone(),
            });
        }
        let owner = self.journal.compares().then(Owner::of_ours);
        let left_out = self.journal.left_out(transfer)?;
        let is_over = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (give, mut found) = sync_channel(AHEAD);
            let look = move || look_through(transfer, is_wanted, left_out, is_over, give);
            started(Builder::new().spawn_scoped(scope, look), &transfer.source)?;
            if let Some(owner) = owner {
                let (give, compared) = sync_channel(AHEAD);
                // Not before it has begun: where there may be no more threads, whoever moves a file compares it.
                let (hand, handed) = sync_channel(1);
                let compare = move || {
                    let found: Option<Receiver<Vec<Row>>> = handed.recv().ok();
                    found.map(|found| compare(&owner, is_over, &found, &give))
                };
                if Builder::new().spawn_scoped(scope, compare).is_ok() {
                    hand.send(std::mem::replace(&mut found, compared)).ok();
                }
            }
            let written = self.write_all(&found);
            is_over.store(true, Ordering::Relaxed);
            drop(found); // it may wait for us to take more
            written
        })
    }

    fn write_all(&mut self, found: &Receiver<Vec<Row>>) -> Result<(), Error> {
        loop {
            match found.recv_timeout(LOOK) {
                Ok(rows) => self.write(&rows)?,
                Err(RecvTimeoutError::Timeout) => self.journal.goes_on(self.on_planned, 0)?,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    fn write(&mut self, rows: &[Row]) -> Result<(), Error> {
        if rows.is_empty() {
            return self.journal.goes_on(self.on_planned, 0);
        }
        let (generation, written) = (self.generation, &mut self.written);
        let mut there = Vec::new();
        self.journal.with(|connection| {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for row in rows {
                match row {
                    Row::Directory {
                        standing, target, ..
                    } => {
                        let numbers = write_directory(&change, generation, row)?;
                        written.push(numbers);
                        there.extend(standing.map(|stamp| (numbers.0, target, stamp)));
                    }
                    Row::Entry { directory, .. } => {
                        write_entry(&change, generation, written[*directory], row)?;
                    }
                    Row::Refusal(failure) => refuse(&change, failure, false)?,
                }
            }
            change.commit()
        })?;
        for (directory, target, stamp) in there {
            self.journal.has_compared(directory, target, stamp);
        }
        self.journal.goes_on(self.on_planned, rows.len() as u64)
    }
}

fn keep_transfer(
    connection: &rusqlite::Connection,
    transfer: &Transfer,
    generation: i64,
    error: Option<&Error>,
) -> rusqlite::Result<()> {
    let what = match transfer.what {
        What::File => 0,
        What::Directory => 1,
        What::FileAs => 2,
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
        ..
    } = row
    else {
        return Ok((0, 0));
    };
    let mut set = change.prepare_cached(
        "INSERT INTO place (path) VALUES (?) ON CONFLICT DO UPDATE SET path = path RETURNING id",
    )?;
    let place: i64 = set.query_row([bytes(place)], |row| row.get(0))?;
    // A directory that was made and not finished yet stays so, and one that could not be finished becomes so.
    let mut set = change.prepare_cached(
        "INSERT INTO directory (source, target, place, is_of_tree, state, generation) VALUES (?, ?, ?, ?, 0, ?) \
         ON CONFLICT DO UPDATE SET generation = excluded.generation, \
         is_of_tree = max(is_of_tree, excluded.is_of_tree), \
         state = CASE WHEN state IN (4, 5) THEN is_made ELSE state END, reason = NULL, remedy = NULL RETURNING id",
    )?;
    let values = params![bytes(source), bytes(target), place, is_of_tree, generation];
    Ok((set.query_row(values, |row| row.get(0))?, place))
}

const INSERT: &str = "INSERT INTO entry \
    (directory, place, name, source_name, kind, state, generation, size_bytes, modified_ns, inode) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?10, ?6, ?7, ?8, ?9) ON CONFLICT DO NOTHING";
/// What has arrived, or is on its way, and did not change since, stays as far as it is. What failed is
/// tried again.
const UPDATE: &str = "UPDATE entry SET \
    state = CASE WHEN state < 5 AND directory = ?1 AND source_name IS ?4 AND kind = ?5 \
      AND size_bytes = ?7 AND modified_ns = ?8 AND inode = ?9 THEN state ELSE ?10 END, \
    directory = ?1, source_name = ?4, kind = ?5, generation = ?6, size_bytes = ?7, modified_ns = ?8, inode = ?9, \
    link_of = NULL, reason = NULL, remedy = NULL \
    WHERE place = ?2 AND name = ?3 AND (generation < ?6 OR (directory = ?1 AND source_name IS ?4)) RETURNING id";

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
        is_there,
        ..
    } = row
    else {
        return Ok(());
    };
    if status.kind == Kind::Other {
        let reason = "it is a fifo, socket or device, which cannot be staged";
        let path = source_path(change, directory, source_name.as_ref().unwrap_or(name))?;
        let failure = Failure {
            errno: Some(libc::EINVAL),
            ..Failure::new(path, reason.to_owned())
        };
        return refuse(change, &failure, false);
    }
    let kind = if status.kind == Kind::Link {
        LINK
    } else {
        FILE
    };
    let source_name = source_name.as_ref().map(|name| name.as_bytes());
    let state = if *is_there {
        State::Copied
    } else {
        State::Planned
    };
    let values = params![
        directory,
        place,
        name.as_bytes(),
        source_name,
        kind,
        generation,
        number(status.size_bytes),
        modified_ns(status),
        number(status.inode),
        state as i64
    ];
    // Nearly all are new, and this is the quickest way.
    if change.prepare_cached(INSERT)?.execute(values)? == 1 {
        if kind == FILE && status.links > 1 {
            write_link(change, change.last_insert_rowid(), status)?;
        }
        return Ok(());
    }
    let mut set = change.prepare_cached(UPDATE)?;
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
        errno: Some(libc::EEXIST),
    };
    refuse(change, &failure, true)
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
