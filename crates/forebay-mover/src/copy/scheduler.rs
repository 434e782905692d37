//! Runs a journal: starts threads and gives them small files in batches and large ones in pieces.
//! Holds the lock of the journal meanwhile. If no thread can be started, the calling thread copies.

use crate::copy::cleanup::{remove_outdated, reset_and_discard, salvage_staged};
use crate::copy::recheck::requeue_missing_targets;
use crate::status::shortages::shortages;
use crate::status::throughput::mark_start;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{Scope, ScopedJoinHandle};

use forebay_host::files::DIRECT_BYTES;
use forebay_host::{files, filesystem, system, threads};

use parking_lot::RwLock;

use crate::copy::blocks::BLOCK_BYTES;
use crate::copy::context::{CopyContext, CopyEvent, CopyEventHandler};
use crate::copy::directories::make;
use crate::copy::exposed::ExposedDirectories;
use crate::copy::remote::{Helper, THREADS_PER_NODE};

use crate::copy::task_guard::TaskGuard;
use crate::copy::task_queue::{BATCH_BYTES_MAX, BATCH_FILES_MAX, BATCH_FILES_MIN, Queue, Task};
use crate::error::Error;
use crate::journal::database::Journal;
use crate::journal::directories::Unfinished;
use crate::model::counts::{Counts, Number};
use crate::model::failed_writes::IncompleteFile;
use crate::model::failure::Failure;
use crate::model::findings::{AlreadyPresent, Findings};
use crate::model::item::{Item, Step};
use crate::model::leaf_size::LeafSize;
use crate::model::options::{Options, Verify, WriteMode};
use crate::model::remote::{NodeShare, RemoteCopier};
use crate::model::state::State;
use crate::model::version::Stamp;
use crate::status::shortages::Shortage;
use crate::stop::{CANCEL_POLL_INTERVAL, Stop};

/// Number of failures that a run returns; the journal has all.
const FAILURES_MAX: usize = 1000;

/// Result of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CopySummary {
    /// Files and links that are complete.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// How many of these files were unchanged at the destination.
    pub unchanged_files: u64,
    /// Bytes copied in this run, without holes and unchanged data.
    pub copied_bytes: u64,
    /// The first thousand failures in the journal, including those of the plan.
    pub failures: Vec<Failure>,
    /// Counts of the whole journal.
    pub counts: Counts,
    /// What other nodes copied of it.
    pub nodes: Vec<NodeShare>,
    /// File systems without room.
    pub shortages: Vec<Shortage>,
    /// Files that may be incomplete, as far as this process planned them.
    pub incomplete: Vec<IncompleteFile>,
    /// The run was stopped before its end.
    pub is_stopped: bool,
}

/// Copies everything in the journal that is not complete. `findings` are those of the plan, if this process made it.
///
/// # Errors
/// Fails if the journal cannot be used or another process runs it. [`CopySummary::failures`] lists failed
/// files.
pub fn carry_out(
    journal: &Journal,
    findings: Findings,
    options: &Options,
    on: &(dyn Fn(CopyEvent) + Sync),
    cancelled: &(dyn Fn() -> bool + Sync),
) -> Result<CopySummary, Error> {
    let _running = journal.lock()?;
    journal.check_rows()?;
    if !journal.is_planned()? {
        return Err(Error::PlanInterrupted(journal.path().to_owned()));
    }
    let has_checksums = options.verify != Verify::Off;
    let cut = format!("{} {} {has_checksums}", system::boot_id()?, options.piece_bytes);
    journal.drop_stale_pieces(&cut)?;
    remove_outdated(journal, &options.tag)?;
    let Findings { already_present, incomplete } = findings;
    if already_present.is_none() {
        salvage_staged(journal, &options.tag)?;
    }
    let stop = Stop::of(cancelled, journal.is_cancelled()?);
    let (until, ended) = channel::<()>();
    std::thread::scope(|scope| {
        let _until = until; // dropped at the end, also after a panic
        let look = || {
            let ended = ended;
            while ended.recv_timeout(CANCEL_POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                if journal.is_cancelled().unwrap_or(false) {
                    stop.is_asked.store(true, Ordering::Relaxed);
                }
            }
        };
        // Without this thread the run cannot be cancelled by its journal.
        threads::spawn_scoped(scope, look).ok();
        let is_known =
            already_present.is_some() || requeue_missing_targets(journal, &|| stop.is_asked())?;
        // If files are left, the result shows the stop. Otherwise the run would finish the directories.
        if !is_known && journal.counts()?.open().files == 0 {
            return Err(Error::RecheckInterrupted(journal.path().to_owned()));
        }
        let moved = move_all(journal, options, on, &stop, already_present)?;
        Ok(CopySummary { incomplete, ..moved })
    })
}

fn move_all(
    journal: &Journal,
    options: &Options,
    on: CopyEventHandler,
    stop: &Stop,
    already_present: Option<AlreadyPresent>,
) -> Result<CopySummary, Error> {
    let workers = options.workers.max(1);
    let mut run = CopyContext::new(journal, options, on, stop);
    // Before Forebay creates directories: that changes the stamps of parents and replaces missing ones.
    run.commit_unchanged(already_present)?;
    // Before other changes, so that the counts can stay cached.
    let counts = journal.counts()?;
    if counts.is_open() {
        mark_start(journal, &counts)?;
    }
    let share = counts.open().files / (2 * workers as u64);
    run.batch_files = share.clamp(BATCH_FILES_MIN, BATCH_FILES_MAX);
    if options.placing == WriteMode::AtomicRename && counts.open().files > 0 {
        let most = LeafSize::most(run.batch_files, BATCH_BYTES_MAX, options.piece_bytes);
        run.directories.leaves = journal.leaves(&most)?;
    }
    let made = make(journal, stop, &run.directories.leaves)?;
    (run.directories.fresh, run.directories.failed) = (made.fresh, RwLock::new(made.failed));
    run.directories.exposed = ExposedDirectories::of(made.identities, made.exposed_leaves);
    run.directories.leaves.retain(|id, _| run.directories.fresh.contains(id));
    let is_whole = std::thread::scope(|scope| {
        let start = |_| threads::spawn_scoped(scope, || run.work()).ok();
        let mut started: Vec<_> = (0..workers).filter_map(start).collect();
        let is_here = !started.is_empty();
        // If the system allows fewer threads, those do the work; if none, this one does.
        if is_here {
            started.extend(run.start_helpers(scope));
        } else {
            run.work();
        }
        // All are joined: the scope panics for one that it joins itself.
        let panicked = started.into_iter().filter_map(|thread| thread.join().err()).count();
        panicked == 0
    });
    if is_whole { run.end() } else { Err(Error::Panicked) }
}

impl CopyContext<'_> {
    /// Completes files that planning found unchanged: they need only a sync, if their directories
    /// are unchanged since. The program that wrote them may not have synced them.
    fn commit_unchanged(&self, present: Option<AlreadyPresent>) -> Result<(), Error> {
        let Some(present) = present else {
            return Ok(());
        };
        // On FUSE, files are synced one by one.
        let sync = |directory: &PathBuf| -> forebay_host::Result<bool> {
            let opened = files::open_to_read(directory)?;
            files::sync_file_system(&opened, directory)?;
            Ok(!filesystem::is_fuse(&opened, directory)?)
        };
        let mut file_systems = present.file_systems.values();
        // If a sync fails, the files are checked one by one and report the error.
        let is_wanted = !self.options.checksum
            && !self.is_stopped()
            && (!self.options.syncs()
                || file_systems.all(|directory| sync(directory).unwrap_or(false)));
        let mut others = Vec::new();
        for (directory, stamp) in &present.directories {
            if !is_wanted || self.is_stopped() {
                // No copy has begun: this only marks files as planned. A run that continues checks them.
                return self.journal.reset_in_progress();
            }
            let Some(target) = self.journal.target_of_directory(*directory)? else {
                continue;
            };
            let is_same = files::status(&target).is_ok_and(|now| Stamp::of(&now) == *stamp);
            if !is_same || !stamp.is_fine() {
                others.push(*directory);
            }
        }
        let Number { files, bytes } = self.journal.place_copied(&others)?;
        if files == 0 {
            return Ok(());
        }
        (self.on)(CopyEvent::Skipped(bytes));
        self.totals.add(files, bytes, files);
        (0..files).for_each(|_| (self.on)(CopyEvent::File));
        Ok(())
    }

    pub(crate) fn end(self) -> Result<CopySummary, Error> {
        if let Some(error) = self.broken.lock().take() {
            return Err(error);
        }
        if !self.is_stopped() {
            self.make_hard_links(&mut vec![0; BLOCK_BYTES])?;
        }
        let journal = self.journal;
        let is_cut = self.is_stopped()
            && (journal.counts()?.open().files > 0 || journal.has_unmade_directories()?);
        if is_cut {
            reset_and_discard(journal, &self.options.tag, Unfinished::InProgress)?;
        } else {
            // Also if a stop is requested now: unfinished directories are accessible only to the owner.
            self.finish_directories()?;
        }
        let is_stopped = self.is_stopped();
        let share = |(node, (files, bytes))| NodeShare { node, files, bytes };
        let notes = self.notes.into_inner();
        for (text, (count, example)) in notes {
            journal.add_note(&text, count, &example)?;
        }
        let counts = journal.counts()?;
        let mut failures = journal.failures(FAILURES_MAX)?;
        let is_stopped = is_stopped && counts.is_open();
        if is_stopped {
            let reason = format!("staging was stopped: {}", counts.left());
            let mut stopped = Failure::new(journal.path().to_owned(), reason);
            stopped.errno = Some(libc::ECANCELED);
            stopped.remedy = Some("run it again: it goes on where it was".to_owned());
            failures.push(stopped);
        }
        let totals = self.totals;
        Ok(CopySummary {
            files: totals.files.into_inner(),
            bytes: totals.bytes.into_inner(),
            unchanged_files: totals.unchanged_files.into_inner(),
            copied_bytes: totals.copied_bytes.into_inner(),
            failures,
            counts,
            nodes: totals.by_node.into_inner().into_iter().map(share).collect(),
            shortages: shortages(journal)?,
            incomplete: Vec::new(),
            is_stopped,
        })
    }

    fn work(&self) {
        let mut memory = vec![0; BLOCK_BYTES + DIRECT_BYTES];
        let from = memory.as_ptr().align_offset(DIRECT_BYTES);
        let block = &mut memory[from..from + BLOCK_BYTES];
        loop {
            let done = match self.take(false) {
                Ok(None) => return,
                Ok(Some(task)) => {
                    let is_large = task.is_large();
                    let _guard = TaskGuard::new(self, is_large);
                    match task {
                        Task::Batch(items) => self.batch(items, block),
                        Task::Begin(item, tries) => self.begin(&item, tries, block),
                        Task::Piece(copying, piece) => self.piece(&copying, piece, block),
                        Task::Check(copying, piece) => self.check(&copying, piece, block),
                    }
                }
                Err(error) => Err(error),
            };
            if let Err(error) = done {
                self.set_broken(error);
            }
        }
    }

    /// Starts threads that give tasks to other nodes.
    fn start_helpers<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
    ) -> Vec<ScopedJoinHandle<'scope, ()>> {
        if self.options.bytes_per_s_max.is_some() {
            return Vec::new(); // the limit is one for all
        }
        let nodes = self.options.remotes.0.iter();
        let threads = nodes.flat_map(|node| std::iter::repeat_n(node, THREADS_PER_NODE));
        let start = |node: &'scope std::sync::Arc<dyn RemoteCopier>| {
            let helper = Helper::new(node.as_ref(), self.options);
            threads::spawn_scoped(scope, move || self.work_remotely(helper)).ok()
        };
        threads.filter_map(start).collect()
    }

    /// The next task; `None` when there is none and no worker can add one. For another node only batches and pieces:
    /// the limit of large files is one of this node.
    pub(crate) fn take(&self, is_remote: bool) -> Result<Option<Task>, Error> {
        let mut queue = self.queue();
        loop {
            let may_be_large = queue.on_large < self.options.workers_on_large.max(1);
            let is_next = |task: &Task| match (is_remote, task) {
                (_, Task::Batch(_)) | (true, Task::Piece(..)) => true,
                (true, _) => false,
                (false, _) => may_be_large,
            };
            let next = queue.tasks.iter().position(is_next);
            if let Some(task) = next.and_then(|at| queue.tasks.remove(at)) {
                queue.busy += 1;
                queue.on_large += usize::from(task.is_large() && !is_remote);
                return Ok(Some(task));
            }
            // Limit the memory for large files that wait.
            let is_full = queue.tasks.len() as u64 >= BATCH_FILES_MAX;
            if !queue.is_exhausted && !is_full && !self.is_stopped() {
                self.fetch(&mut queue)?;
            } else if queue.busy == 0 && queue.tasks.is_empty() {
                return Ok(None);
            } else {
                self.queued.wait(&mut queue);
            }
        }
    }

    /// Takes the next files from the journal: one batch of small ones, and the large ones among them.
    fn fetch(&self, queue: &mut Queue) -> Result<(), Error> {
        let limit = usize::try_from(self.batch_files).unwrap_or(usize::MAX);
        // Files above the limit of a batch are synced one by one anyway, so they bypass the page cache.
        let most_in_batch = match self.options.past_page_cache {
            true => self.options.piece_bytes.min(BATCH_BYTES_MAX),
            false => self.options.piece_bytes,
        };
        let mut items = self.journal.items_after(queue.last, limit)?;
        queue.is_exhausted = items.len() < limit;
        self.add_rest_of_leaf(&mut items)?;
        let mut small = Vec::new();
        let mut small_bytes = 0;
        let mut begun = Vec::new();
        for item in items {
            let is_large = item.size_bytes > most_in_batch;
            let is_begun = self.directories.leaves.contains_key(&item.directory)
                && small.last().is_some_and(|last: &Item| last.directory == item.directory);
            let is_full = small_bytes > 0 && small_bytes + item.size_bytes > BATCH_BYTES_MAX;
            if !is_large && is_full && !is_begun {
                queue.is_exhausted = false;
                break;
            }
            queue.last = item.id;
            if is_large {
                queue.tasks.push_back(Task::Begin(item, 0));
                continue;
            }
            small_bytes += item.size_bytes;
            if item.state == State::Planned {
                begun.push(Step::to(&item, State::Copying));
            }
            small.push(item);
        }
        self.journal.apply_updates(&begun)?;
        if !small.is_empty() {
            queue.tasks.push_back(Task::Batch(small));
        }
        self.queued.notify_all();
        Ok(())
    }
}
