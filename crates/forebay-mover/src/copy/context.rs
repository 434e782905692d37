//! State shared by all threads of one run: options, counters, notes, tasks.
//! A thread that holds the lock of the queue may use the journal, never the reverse.

use std::collections::{BTreeMap, HashMap, HashSet};

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use forebay_host::{clock, files};
use parking_lot::{Condvar, Mutex, RwLock};

use crate::bandwidth_limit::BandwidthLimit;
use crate::copy::exposed::ExposedDirectories;
use crate::copy::striping_cache::Striping;
use crate::copy::task_queue::{BATCH_FILES_MIN, Queue, Task};
use crate::error::Error;
use crate::journal::database::Journal;
use crate::model::item::Item;
use crate::model::options::Options;
use crate::model::partial_names::not_removed;
use crate::model::reason::Reason;
use crate::model::version::MemoryDevices;
use crate::ownership::Owner;
use crate::stop::Stop;

/// Progress of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyEvent {
    /// This many bytes were copied.
    Bytes(u64),
    /// This many written bytes were read back.
    Reread(u64),
    /// This many bytes need no copy: holes, and unchanged data at the destination.
    Skipped(u64),
    /// A file is complete under its final name.
    File,
}

pub(crate) type CopyEventHandler<'a> = &'a (dyn Fn(CopyEvent) + Sync);

pub(crate) struct CopyContext<'a> {
    pub(crate) journal: &'a Journal,
    pub(crate) options: &'a Options,
    pub(crate) on: CopyEventHandler<'a>,
    stop: &'a Stop<'a>,
    /// When it began, in milliseconds since 1970.
    pub(crate) began_unix_ms: i64,
    pub(crate) bandwidth_limit: Option<BandwidthLimit>,
    pub(crate) owner: Owner,
    pub(crate) directories: DirectoryStates,
    pub(crate) striping: Striping,
    pub(crate) memory: MemoryDevices,
    pub(crate) batch_files: u64,
    queue: Mutex<Queue>,
    pub(crate) queued: Condvar,
    pub(crate) notes: Mutex<BTreeMap<String, (u64, PathBuf)>>,
    /// The first error of the journal.
    pub(crate) broken: Mutex<Option<Error>>,
    is_broken: AtomicBool,
    pub(crate) totals: Totals,
}

/// What is known of the directories of the destination.
#[derive(Default)]
pub(crate) struct DirectoryStates {
    /// Those that did not exist before this run. They are empty when created.
    pub(crate) fresh: HashSet<i64>,
    /// Those that could not be made.
    pub(crate) failed: RwLock<HashMap<i64, Reason>>,
    /// Those that are filled under another name, and how many files go into each.
    pub(crate) leaves: BTreeMap<i64, u64>,
    /// Those that other users can exchange.
    pub(crate) exposed: ExposedDirectories,
    /// Set when the file system refuses to rename a directory.
    pub(crate) refuses_rename: AtomicBool,
}

/// What this run has delivered so far.
#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) files: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) unchanged_files: AtomicU64,
    pub(crate) copied_bytes: AtomicU64,
    /// What other nodes copied: files and bytes, by node.
    pub(crate) by_node: Mutex<BTreeMap<String, (u64, u64)>>,
}

impl Totals {
    /// Files are delivered, of which so many needed no copy.
    pub(crate) fn add(&self, files: u64, bytes: u64, unchanged_files: u64) {
        self.files.fetch_add(files, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.unchanged_files.fetch_add(unchanged_files, Ordering::Relaxed);
    }
}

impl<'a> CopyContext<'a> {
    pub(crate) fn new(
        journal: &'a Journal,
        options: &'a Options,
        on: CopyEventHandler<'a>,
        stop: &'a Stop<'a>,
    ) -> Self {
        Self {
            journal,
            options,
            on,
            stop,
            began_unix_ms: i64::try_from(clock::unix_milliseconds()).unwrap_or_default(),
            bandwidth_limit: options.bytes_per_s_max.map(BandwidthLimit::new),
            owner: Owner::of_ours(),
            directories: DirectoryStates::default(),
            batch_files: BATCH_FILES_MIN,
            striping: Striping::default(),
            memory: MemoryDevices::default(),
            queue: Mutex::default(),
            queued: Condvar::new(),
            notes: Mutex::default(),
            broken: Mutex::default(),
            is_broken: AtomicBool::new(false),
            totals: Totals::default(),
        }
    }
}

impl CopyContext<'_> {
    pub(crate) fn queue(&self) -> parking_lot::MutexGuard<'_, Queue> {
        self.queue.lock()
    }

    /// Puts tasks at the front of the queue: files in progress come first.
    pub(crate) fn add_tasks(&self, tasks: impl DoubleEndedIterator<Item = Task>) {
        let mut queue = self.queue();
        tasks.rev().for_each(|task| queue.tasks.push_front(task));
        self.queued.notify_all();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_asked() || self.is_broken.load(Ordering::Relaxed)
    }

    pub(crate) fn check_stopped(&self) -> Result<(), Reason> {
        if self.is_stopped() {
            return Err(Reason::stopped());
        }
        Ok(())
    }

    /// Stops all threads for an error of the journal.
    pub(crate) fn set_broken(&self, error: Error) {
        self.broken.lock().get_or_insert(error);
        self.is_broken.store(true, Ordering::Relaxed);
    }

    pub(crate) fn add_copied(&self, bytes: u64) {
        self.totals.copied_bytes.fetch_add(bytes, Ordering::Relaxed);
        (self.on)(CopyEvent::Bytes(bytes));
    }

    pub(crate) fn record_delivered(&self, bytes: u64, was_there: bool) {
        self.totals.add(1, bytes, was_there.into());
        (self.on)(CopyEvent::File);
    }

    /// Records the failure and removes what an earlier run left of the file.
    pub(crate) fn record_failed(&self, item: &Item, reason: Reason) -> Result<(), Error> {
        if reason.is_stop {
            return Ok(()); // the state stays as it is
        }
        self.drop_part(item);
        self.journal.record_failed(item.id, &reason)
    }

    /// Removes an incomplete file. If that fails, notes it.
    pub(crate) fn remove_best_effort(&self, path: &Path) {
        match files::remove_file(path) {
            Err(error) if !error.is_absent() => self.warn_once(&not_removed(&error), path),
            _ => {}
        }
    }

    /// Notes a problem of a copied file, such as a missing attribute.
    pub(crate) fn warn_once(&self, text: &str, example: &Path) {
        let mut notes = self.notes.lock();
        let first = || (0, example.to_owned());
        notes.entry(text.to_owned()).or_insert_with(first).0 += 1;
    }

    /// Was the directory of this item empty when Forebay created it?
    pub(crate) fn is_fresh(&self, item: &Item) -> bool {
        let Self { directories, .. } = self;
        let is_made = item.filled.is_some() || !directories.leaves.contains_key(&item.directory);
        is_made && directories.fresh.contains(&item.directory)
    }
}
