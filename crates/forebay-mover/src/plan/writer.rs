//! Writes a plan into the journal in short transactions: memory grows with the number of directories, not of files.
//! Assumes that one process plans a journal at a time. Never creates or changes a file at a destination.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SendError, sync_channel};

use crate::error::Error;
use crate::journal::columns::bytes;
use crate::journal::database::Journal;
use crate::model::failed_writes::FailedWrites;
use crate::model::findings::{AlreadyPresent, Findings};
use crate::model::scan_entry::{ScanEntry, resolve};
use crate::model::transfer::{Transfer, TransferKind};
use crate::ownership::Owner;
use crate::plan::compare::compare;
use crate::plan::failed_writes::FailedSources;
use crate::plan::scan::{IsWanted, walk_tree};
use crate::stop::CANCEL_POLL_INTERVAL;
use forebay_host::files::{self, parent_of};
use forebay_host::files::{Kind, Status};
use forebay_host::threads;

/// Called with the number of files and directories written since the last call, often 0. Returns
/// whether to continue. A cancelled journal stops the plan, too.
pub type PlanProgress<'a> = &'a dyn Fn(u64) -> bool;

/// Portions that a scan can be ahead of the writer.
const AHEAD: usize = 4;

/// A plan that is being made in a journal.
pub struct Plan<'a> {
    /// The journal.
    pub journal: &'a Journal,
    on_planned: PlanProgress<'a>,
    generation: i64,
    /// Set if sources are compared with destinations, and unchanged files marked as copied.
    already_present: RefCell<Option<AlreadyPresent>>,
    /// None if no source has a failed write.
    failed: Option<FailedSources>,
}

impl<'a> Plan<'a> {
    /// Begins a plan. It deletes earlier planned files that are not found again, and does not copy unchanged files
    /// again.
    ///
    /// # Errors
    /// Fails if the journal cannot be written.
    pub fn begin(journal: &'a Journal, on_planned: PlanProgress<'a>) -> Result<Self, Error> {
        journal.check_rows()?;
        let is_empty = journal.begin_plan()?;
        let already_present = RefCell::new(is_empty.then(AlreadyPresent::default));
        Ok(Self { already_present, ..Self::extend(journal, on_planned)? })
    }

    /// Adds to the plan that the journal has.
    ///
    /// # Errors
    /// Fails if the journal cannot be read.
    pub fn extend(journal: &'a Journal, on_planned: PlanProgress<'a>) -> Result<Self, Error> {
        let generation = journal.generation()?;
        Ok(Self {
            journal,
            on_planned,
            generation,
            already_present: RefCell::default(),
            failed: None,
        })
    }

    /// These sources may be incomplete: no file at their destinations is replaced.
    #[must_use]
    pub fn with_failed_writes(self, failed: FailedWrites) -> Self {
        Self { failed: FailedSources::of(failed), ..self }
    }

    /// Scans the source of a transfer and adds it. A run copies what is new or changed.
    ///
    /// # Errors
    /// Fails if a source is missing or not of the stated kind, or the journal cannot be written, and with
    /// [`Error::PlanInterrupted`] if `on_planned` stops it. Problems within a source are among [`Journal::failures`].
    pub fn add(&self, transfer: &Transfer) -> Result<(), Error> {
        self.add_wanted(transfer, &|_| true)
    }

    /// As [`Plan::add`], for files and links whose targets `is_wanted` accepts.
    ///
    /// # Errors
    /// As [`Plan::add`].
    pub fn add_wanted(&self, transfer: &Transfer, is_wanted: IsWanted) -> Result<(), Error> {
        self.journal.keep_transfer(transfer, self.generation, None)?;
        PlanWriter { plan: self, written: Vec::new() }.plan(transfer, is_wanted)
    }

    /// As [`Plan::add`]. If the source itself is invalid, records that as a failure.
    ///
    /// # Errors
    /// Fails if the journal cannot be written, or `on_planned` stopped it.
    pub fn add_or_record_failure(&self, transfer: &Transfer) -> Result<(), Error> {
        match self.add(transfer) {
            Err(
                error @ (Error::Host(_)
                | Error::NoSource(_)
                | Error::NotAFile(_)
                | Error::NotADirectory(_)
                | Error::IntoItself { .. }),
            ) => self.journal.keep_transfer(transfer, self.generation, Some(&error)),
            added => added,
        }
    }

    /// Rejects permanently what would go into such a directory, also through links or mounts.
    ///
    /// # Errors
    /// Fails if the journal cannot be written, or `on_planned` stopped it.
    pub fn reject_destinations(
        &self,
        reason: &str,
        is_refused: &dyn Fn(&Path) -> bool,
    ) -> Result<(), Error> {
        for (place, path) in self.journal.places()? {
            self.check_cancelled(0)?;
            if is_refused(&path) {
                self.journal.reject_place(place, reason)?;
            }
        }
        Ok(())
    }

    /// Ends the plan.
    ///
    /// # Errors
    /// Fails if the journal cannot be written.
    pub fn end(self) -> Result<Findings, Error> {
        self.journal.end_plan()?;
        let incomplete = self.failed.map(|failed| failed.planned.into_inner()).unwrap_or_default();
        Ok(Findings { already_present: self.already_present.into_inner(), incomplete })
    }

    /// Reports progress. Fails if the caller or the journal requests a stop.
    fn check_cancelled(&self, planned: u64) -> Result<(), Error> {
        if (self.on_planned)(planned) && !self.journal.is_cancelled()? {
            return Ok(());
        }
        Err(Error::PlanInterrupted(self.journal.path().to_owned()))
    }
}

/// One transfer that is being planned.
struct PlanWriter<'a> {
    plan: &'a Plan<'a>,
    /// Numbers of each directory and its place in the journal.
    written: Vec<(i64, i64)>,
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
        let failed = self.plan.failed.as_ref();
        if let Some(name) =
            failed.and_then(|failed| failed.changed_name(&transfer.source, &target, &status))
        {
            target.set_file_name(name);
        }
        let directory =
            ScanEntry::directory(parent_of(&transfer.source), parent_of(&target), false);
        let name = |path: &Path| path.file_name().unwrap_or_default().to_owned();
        let (name, source_name) = (name(&target), name(&transfer.source));
        let entry = ScanEntry::Entry {
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
                || self.plan.journal.is_planned_directory(target)?);
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
        let plan = self.plan;
        let owner = plan.already_present.borrow().is_some().then(Owner::of_ours);
        let left_out = plan.journal.left_out(transfer)?;
        let failed = plan.failed.as_ref();
        let is_over = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (give, mut found) = sync_channel(AHEAD);
            let excluded = left_out.clone();
            let look = move || {
                let give = &mut |rows| give.send(rows);
                walk_tree(failed, transfer, is_wanted, excluded, is_over, give);
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
                    let found: Option<Receiver<Vec<ScanEntry>>> = handed.recv().ok();
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
        let failed = self.plan.failed.as_ref();
        let write = &mut |rows: Vec<ScanEntry>| {
            written = self.write(&rows);
            written.as_ref().map_err(|_| SendError(Vec::new())).copied()
        };
        walk_tree(failed, transfer, is_wanted, left_out, &AtomicBool::new(false), write);
        written
    }

    pub(crate) fn write_all(&mut self, found: &Receiver<Vec<ScanEntry>>) -> Result<(), Error> {
        loop {
            match found.recv_timeout(CANCEL_POLL_INTERVAL) {
                Ok(rows) => self.write(&rows)?,
                Err(RecvTimeoutError::Timeout) => self.plan.check_cancelled(0)?,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    pub(crate) fn write(&mut self, rows: &[ScanEntry]) -> Result<(), Error> {
        if rows.is_empty() {
            return self.plan.check_cancelled(0);
        }
        let Plan { journal, generation, already_present, .. } = self.plan;
        let compared = journal.write_found(*generation, &mut self.written, rows)?;
        if let Some(present) = &mut *already_present.borrow_mut() {
            for (directory, target, stamp) in compared {
                let file_system = present.file_systems.entry(stamp.device);
                file_system.or_insert_with(|| target.to_owned());
                present.directories.entry(directory).or_insert(stamp);
            }
        }
        self.plan.check_cancelled(rows.len() as u64)
    }
}
