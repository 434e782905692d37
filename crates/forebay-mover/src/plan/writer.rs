//! Writes a plan into the journal in short transactions: memory does not grow with the number of files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SendError, sync_channel};

use crate::error::Error;
use crate::journal::columns::bytes;
use crate::journal::database::Journal;
use crate::model::found::{Found, resolve};
use crate::model::transfer::{Transfer, TransferKind};
use crate::ownership::Owner;
use crate::plan::compare::compare;
use crate::plan::scan::{IsWanted, walk_tree};
use crate::stop::LOOK;
use forebay_host::files::{self, parent_of};
use forebay_host::files::{Kind, Status};
use forebay_host::threads;

/// Called with the number of files and directories written since the last call, often 0. Returns
/// whether to continue. A cancelled journal stops the plan, too.
pub type Planned<'a> = &'a dyn Fn(u64) -> bool;

/// Portions that a scan can be ahead of the writer.
const AHEAD: usize = 4;

/// One transfer that is being planned.
struct PlanWriter<'a> {
    journal: &'a Journal,
    /// Numbers of each directory and its place in the journal.
    written: Vec<(i64, i64)>,
    generation: i64,
    on_planned: Planned<'a>,
}

impl Journal {
    /// Plans exactly these transfers. Deletes earlier planned files that are not found again. Does
    /// not copy unchanged files again.
    ///
    /// # Errors
    /// Fails if a source is missing or not of the stated kind, or the journal cannot be written.
    /// Problems within a source are among [`Journal::failures`].
    pub fn plan(&self, transfers: &[Transfer]) -> Result<(), Error> {
        self.begin_plan()?;
        for transfer in transfers {
            self.add(transfer)?;
        }
        self.end_plan()
    }

    /// Begins a plan. The caller then adds transfers one by one.
    pub fn begin_plan(&self) -> Result<(), Error> {
        self.check_rows()?;
        let is_empty = self.begin_generation()?;
        self.begin_comparing(is_empty);
        Ok(())
    }

    /// Scans the source of a transfer and adds it to the plan. A run copies what is new or changed.
    pub fn add(&self, transfer: &Transfer) -> Result<(), Error> {
        self.plan_transfer(transfer, &|_| true)
    }

    /// As [`Journal::add`]; calls `on_planned` during the scan.
    ///
    /// # Errors
    /// As [`Journal::plan`], and [`Error::PlanInterrupted`] if `on_planned` stops it.
    pub fn plan_transfer(&self, transfer: &Transfer, on_planned: Planned) -> Result<(), Error> {
        self.plan_wanted(transfer, on_planned, &|_| true)
    }

    /// As [`Journal::plan_transfer`], for files and links whose targets `is_wanted` accepts.
    pub fn plan_wanted(
        &self,
        transfer: &Transfer,
        on_planned: Planned,
        is_wanted: IsWanted,
    ) -> Result<(), Error> {
        let generation = self.generation()?;
        self.keep_transfer(transfer, generation, None)?;
        let mut writer = PlanWriter { journal: self, written: Vec::new(), generation, on_planned };
        writer.plan(transfer, is_wanted)
    }

    /// As [`Journal::plan_transfer`]. If the source itself is invalid, records that as a failure.
    ///
    /// # Errors
    /// Fails if the journal cannot be written, or `on_planned` stopped it.
    pub fn plan_or_record_failure(
        &self,
        transfer: &Transfer,
        on_planned: Planned,
    ) -> Result<(), Error> {
        match self.plan_transfer(transfer, on_planned) {
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

    /// Reports progress. Fails if the caller or the journal requests a stop.
    pub(crate) fn check_cancelled(&self, on_planned: Planned, planned: u64) -> Result<(), Error> {
        if on_planned(planned) && !self.is_cancelled()? {
            return Ok(());
        }
        Err(Error::PlanInterrupted(self.path().to_owned()))
    }
}

impl PlanWriter<'_> {
    pub(crate) fn plan(&mut self, transfer: &Transfer, is_wanted: IsWanted) -> Result<(), Error> {
        let status = match files::status(&transfer.source) {
            Err(error) if error.is_not_found() => {
                return Err(Error::NoSource(transfer.source.clone()));
            }
            found => found?,
        };
        match (transfer.what, status.kind) {
            (TransferKind::File | TransferKind::FileToName, Kind::File) => {
                self.plan_file(transfer, status, is_wanted)
            }
            (TransferKind::File | TransferKind::FileToName, _) => {
                Err(Error::NotAFile(transfer.source.clone()))
            }
            (TransferKind::Directory, Kind::Directory) => self.plan_tree(transfer, is_wanted),
            (TransferKind::Directory, _) => Err(Error::NotADirectory(transfer.source.clone())),
        }
    }

    fn plan_file(
        &mut self,
        transfer: &Transfer,
        status: Status,
        is_wanted: IsWanted,
    ) -> Result<(), Error> {
        let mut target = self.target_of_file(transfer)?;
        if !is_wanted(&target) {
            return Ok(());
        }
        if let Some(name) = self.journal.name_beside(&transfer.source, &target, &status) {
            target.set_file_name(name);
        }
        let directory = Found::directory(parent_of(&transfer.source), parent_of(&target), false);
        let name = |path: &Path| path.file_name().unwrap_or_default().to_owned();
        let (name, source_name) = (name(&target), name(&transfer.source));
        let entry = Found::Entry {
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
        let is_directory = transfer.what == TransferKind::File
            && (bytes(target).ends_with(b"/")
                || files::status(target).is_ok_and(|s| s.kind == Kind::Directory)
                || self.journal.is_planned_directory(target)?);
        Ok(match transfer.source.file_name() {
            Some(name) if is_directory => target.join(name),
            _ => target.clone(),
        })
    }

    /// One thread scans, one compares with the destinations, this one writes the rows.
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
        let journal = self.journal;
        std::thread::scope(|scope| {
            let (give, mut found) = sync_channel(AHEAD);
            let excluded = left_out.clone();
            let look = move || {
                let give = &mut |rows| give.send(rows);
                walk_tree(journal, transfer, is_wanted, excluded, is_over, give);
            };
            let Ok(scan) = threads::spawn_scoped(scope, look) else {
                return self.plan_tree_alone(transfer, is_wanted, left_out);
            };
            let mut comparing = None;
            if let Some(owner) = owner {
                let (give, compared) = sync_channel(AHEAD);
                // Hand over after the thread starts: if the system allows no thread, the copy compares.
                let (hand, handed) = sync_channel(1);
                let compare = move || {
                    let found: Option<Receiver<Vec<Found>>> = handed.recv().ok();
                    found.map(|found| compare(&owner, is_over, &found, &give))
                };
                if let Ok(thread) = threads::spawn_scoped(scope, compare) {
                    hand.send(std::mem::replace(&mut found, compared)).ok();
                    comparing = Some(thread);
                }
            }
            let written = self.write_all(&found);
            is_over.store(true, Ordering::Relaxed);
            drop(found); // the scan may wait until portions are received
            let is_whole = scan.join().is_ok();
            let is_compared = comparing.is_none_or(|thread| thread.join().is_ok());
            if is_whole && is_compared { written } else { Err(Error::Panicked) }
        })
    }

    /// Scans and writes in this thread, where no other one can be started. The copy compares with the destinations.
    fn plan_tree_alone(
        &mut self,
        transfer: &Transfer,
        is_wanted: IsWanted,
        left_out: BTreeSet<PathBuf>,
    ) -> Result<(), Error> {
        let mut written = Ok(());
        let journal = self.journal;
        let write = &mut |rows: Vec<Found>| {
            written = self.write(&rows);
            written.as_ref().map_err(|_| SendError(Vec::new())).copied()
        };
        walk_tree(journal, transfer, is_wanted, left_out, &AtomicBool::new(false), write);
        written
    }

    pub(crate) fn write_all(&mut self, found: &Receiver<Vec<Found>>) -> Result<(), Error> {
        loop {
            match found.recv_timeout(LOOK) {
                Ok(rows) => self.write(&rows)?,
                Err(RecvTimeoutError::Timeout) => {
                    self.journal.check_cancelled(self.on_planned, 0)?
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    pub(crate) fn write(&mut self, rows: &[Found]) -> Result<(), Error> {
        if rows.is_empty() {
            return self.journal.check_cancelled(self.on_planned, 0);
        }
        let there = self.journal.write_found(self.generation, &mut self.written, rows)?;
        for (directory, target, stamp) in there {
            self.journal.has_compared(directory, target, stamp);
        }
        self.journal.check_cancelled(self.on_planned, rows.len() as u64)
    }
}
