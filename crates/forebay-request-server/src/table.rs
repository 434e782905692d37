//! The requests and their states. Never accesses the file system.
//! Assumes absolute names with links resolved. Its caller holds the lock.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use forebay_requests::Counts;

use forebay_directive::Direction;
use forebay_record::{PendingStageOut, Selection};

/// The number of an error, as in errno(3).
pub(crate) type Errno = i32;

/// A file or directory to copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Copy {
    pub(crate) direction: Direction,
    /// The path in the burst buffer, which is the key of the request.
    pub(crate) inner: PathBuf,
    /// The path on the file system.
    pub(crate) outer: PathBuf,
    pub(crate) is_directory: bool,
    /// Paths below a directory that are excluded from the copy, by names in the burst buffer.
    pub(crate) left_out: BTreeSet<PathBuf>,
}

/// A copy in progress.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) copy: Copy,
    /// The unique number of the task's request.
    pub(crate) serial: u64,
    pub(crate) cancelled: Arc<AtomicBool>,
    /// The number of copied files.
    pub(crate) arrived: Arc<AtomicU32>,
}

/// The outcome of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskOutcome {
    Complete,
    Failed,
    /// The request was terminated or replaced: the result does not count.
    Dropped,
    /// The request is queued again. The next copy skips files already copied.
    Requeued,
}

/// Files whose copy failed, by their names in the burst buffer.
pub(crate) type FailedFiles = BTreeMap<PathBuf, Errno>;

#[derive(Debug)]
enum State {
    Deferred,
    Queued,
    Copying(Arc<AtomicBool>, Arc<AtomicU32>),
    /// Being copied; the entry is dropped when the copy ends.
    Terminating,
    Ended(FailedFiles),
}

/// A request.
#[derive(Debug)]
struct Entry {
    copy: Copy,
    /// The files of a directory when it was requested, by their names in the burst buffer.
    files: BTreeSet<PathBuf>,
    state: State,
    serial: u64,
    /// A part was terminated during the copy: the request is queued again without it.
    requeue: bool,
    /// Everything was copied. The end of the job copies an undelivered stage-out.
    is_delivered: bool,
}

#[derive(Debug, Default)]
pub(crate) struct RequestTable {
    /// Requests by name in the burst buffer. Paths below a directory directly follow it.
    entries: BTreeMap<PathBuf, Entry>,
    queue: VecDeque<(PathBuf, u64)>,
    /// The last stage-out of a file to each destination: its name and serial number.
    writers: HashMap<PathBuf, (PathBuf, u64)>,
    serial: u64,
}

impl Copy {
    /// The copy of a part of this directory.
    fn part(&self, inner: &Path, is_directory: bool) -> Self {
        let below = inner.strip_prefix(&self.inner).unwrap_or(Path::new(""));
        let left_out = self.left_out.iter().filter(|out| out.starts_with(inner));
        Self {
            direction: self.direction,
            inner: inner.to_owned(),
            outer: self.outer.join(below),
            is_directory,
            left_out: left_out.cloned().collect(),
        }
    }

    /// The excluded paths, by names in the source.
    pub(crate) fn left_out_of_source(&self) -> BTreeSet<PathBuf> {
        let (source, _) = self.ends();
        let below = self.left_out.iter();
        let below = below.filter_map(|out| out.strip_prefix(&self.inner).ok());
        below.map(|below| source.join(below)).collect()
    }

    /// The entry for the list of requests, if this is a stage-out.
    pub(crate) fn as_open(&self) -> Option<PendingStageOut> {
        (self.direction == Direction::Out).then(|| PendingStageOut {
            inner: self.inner.clone(),
            outer: self.outer.clone(),
            is_directory: self.is_directory,
            left_out: self.left_out.clone(),
        })
    }

    fn leaves_out(&self, inner: &Path) -> bool {
        inner.ancestors().any(|above| self.left_out.contains(above))
    }

    /// Source and target.
    pub(crate) fn ends(&self) -> (&Path, &Path) {
        match self.direction {
            Direction::In => (&self.outer, &self.inner),
            Direction::Out => (&self.inner, &self.outer),
        }
    }
}

impl RequestTable {
    /// Adds a request to copy now or at the end of the job. `files` are the files in a directory.
    pub(crate) fn add(&mut self, copy: Copy, files: BTreeSet<PathBuf>, is_deferred: bool) {
        let name = copy.inner.clone();
        // An earlier result no longer counts.
        self.drop_entry(&name);
        if copy.is_directory {
            let ended = |entry: &&Entry| matches!(entry.state, State::Ended(_));
            // A failed stage-out to another destination still waits for the end of the job.
            let below = self.below(&name).filter(ended).filter(|entry| !entry.is_undelivered());
            let names: Vec<_> = below.map(|entry| entry.copy.inner.clone()).collect();
            for name in names {
                self.entries.remove(&name);
            }
        }
        self.serial += 1;
        let state = if is_deferred {
            State::Deferred
        } else {
            self.queue.push_back((name.clone(), self.serial));
            State::Queued
        };
        let (serial, requeue, is_delivered) = (self.serial, false, false);
        let entry = Entry { copy, files, state, serial, requeue, is_delivered };
        self.entries.insert(name, entry);
    }

    /// Records the destination of the stage-out of a file, with links resolved.
    pub(crate) fn record_writer(&mut self, target: PathBuf, inner: &Path) {
        if let Some(entry) = self.entries.get(inner) {
            self.writers.insert(target, (inner.to_owned(), entry.serial));
        }
    }

    /// The file whose undelivered stage-out has this destination.
    pub(crate) fn writer_of(&self, target: &Path) -> Option<&Path> {
        let (inner, serial) = self.writers.get(target)?;
        let entry = self.entries.get(inner).filter(|entry| entry.serial == *serial)?;
        entry.is_undelivered().then_some(inner)
    }

    /// The undelivered stage-outs of this path, of a directory above it, and below it.
    pub(crate) fn undelivered(&self, inner: &Path) -> Vec<(PathBuf, bool)> {
        let above = inner.ancestors().skip(1).filter_map(|above| self.entries.get(above));
        let above = above.filter(|entry| entry.copy.is_directory && !entry.copy.leaves_out(inner));
        let all = above.chain(self.below(inner)).filter(|entry| entry.is_undelivered());
        all.map(|entry| (entry.copy.inner.clone(), entry.copy.is_directory)).collect()
    }

    /// Is a part of it being copied or queued?
    pub(crate) fn is_busy(&self, inner: &Path, is_directory: bool) -> bool {
        if is_directory {
            let above = inner.ancestors().filter_map(|above| self.entries.get(above));
            let mut trees = above.filter(|entry| entry.copy.is_directory);
            return trees.any(Entry::is_pending) || self.below(inner).any(Entry::is_pending);
        }
        self.entry_of(inner).is_some_and(Entry::is_pending)
    }

    /// The next task. The worker calls [`RequestTable::finish`] when it ends.
    pub(crate) fn take(&mut self) -> Option<Task> {
        while let Some((inner, serial)) = self.queue.pop_front() {
            let Some(entry) = self.entries.get_mut(&inner) else {
                continue; // terminated
            };
            if entry.serial != serial || !matches!(entry.state, State::Queued) {
                continue; // requested again
            }
            let task = Task {
                copy: entry.copy.clone(),
                serial,
                cancelled: Arc::default(),
                arrived: Arc::default(),
            };
            entry.state = State::Copying(Arc::clone(&task.cancelled), Arc::clone(&task.arrived));
            return Some(task);
        }
        None
    }

    /// The maximum number of queued tasks.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Records the result of a task.
    pub(crate) fn finish(&mut self, task: &Task, failed: FailedFiles) -> TaskOutcome {
        let inner = &task.copy.inner;
        let entry = self.entries.get_mut(inner);
        let Some(entry) = entry.filter(|entry| entry.serial == task.serial) else {
            return TaskOutcome::Dropped;
        };
        if matches!(entry.state, State::Terminating) {
            self.entries.remove(inner);
            return TaskOutcome::Dropped;
        }
        if std::mem::take(&mut entry.requeue) {
            entry.state = State::Queued;
            self.queue.push_back((inner.clone(), task.serial));
            return TaskOutcome::Requeued;
        }
        entry.is_delivered = failed.is_empty();
        entry.state = State::Ended(failed);
        match entry.is_delivered {
            true => TaskOutcome::Complete,
            false => TaskOutcome::Failed,
        }
    }

    /// Files in each state: those of the request with this name. For a file, also as part of a
    /// requested directory; for a directory, also all requests in it.
    pub(crate) fn counts(&self, inner: &Path, is_directory: bool) -> Option<Counts> {
        if !is_directory {
            let entry = self.entry_of(inner)?;
            return Some(entry.counts_of(inner));
        }
        let part = self.part_of(inner).filter(|_| self.tree(inner).is_none()).map(|entry| {
            let files = entry.files.iter().filter(|file| file.starts_with(inner));
            self.counts_of_all(entry, files)
        });
        let part = part.filter(|counts| *counts != Counts::default());
        let is_alone = self.below(inner).nth(1).is_none();
        let below = self.below(inner).map(|entry| match is_alone || !entry.copy.is_directory {
            true => entry.counts(),
            false => self.counts_of_all(entry, entry.files.iter()),
        });
        below.chain(part).reduce(|mut sum, counts| {
            sum += counts;
            sum
        })
    }

    /// Counts these files of a directory, without files that have a request of their own.
    fn counts_of_all<'a>(&self, entry: &Entry, files: impl Iterator<Item = &'a PathBuf>) -> Counts {
        let is_own = |file: &&PathBuf| {
            self.entry_of(file).is_some_and(|nearest| nearest.serial == entry.serial)
        };
        files.filter(is_own).fold(Counts::default(), |mut sum, file| {
            sum += entry.counts_of(file);
            sum
        })
    }

    /// Is it a stage-in that is not complete, so that the path need not exist in the burst buffer?
    pub(crate) fn is_incomplete_stage_in(&self, inner: &Path) -> bool {
        let entry = self.entries.get(inner).or_else(|| self.part_of(inner));
        let is_in = entry.is_some_and(|entry| entry.copy.direction == Direction::In);
        let counts = self.counts(inner, true).filter(|_| is_in);
        counts.is_some_and(|counts| counts.pending + counts.failed > 0)
    }

    /// The selection of a name: for a directory, all requests in it; the request of that name or, if there is none,
    /// the part of a requested directory.
    pub(crate) fn select(&self, inner: &Path, is_directory: bool) -> Vec<Selection> {
        let mut meant = Vec::new();
        if is_directory {
            meant.extend(self.below(inner).map(Entry::whole));
        }
        if self.is_asked(inner, is_directory) {
            if !is_directory {
                meant.extend(self.entries.get(inner).map(Entry::whole));
            }
            return meant;
        }
        let part = self.part_of(inner).map(|entry| Selection::Part {
            tree: entry.copy.inner.clone(),
            inner: inner.to_owned(),
        });
        meant.extend(part);
        meant
    }

    /// The part of a selection that is to be copied at the end of the job.
    pub(crate) fn deferred(&self, inner: &Path, is_directory: bool) -> Vec<(Selection, Copy)> {
        let meant = self.select(inner, is_directory).into_iter();
        let deferred = meant.filter_map(|meant| {
            let entry = self.entries.get(meant.name())?;
            let copy = match &meant {
                Selection::Whole { .. } => entry.copy.clone(),
                Selection::Part { inner, .. } => entry.copy.part(inner, is_directory),
            };
            matches!(entry.state, State::Deferred).then_some((meant, copy))
        });
        deferred.collect()
    }

    /// Removes a selection from the copies at the end of the job.
    pub(crate) fn revoke(&mut self, meant: &Selection) {
        match meant {
            Selection::Whole { inner, .. } => self.drop_entry(inner),
            Selection::Part { tree, inner } => {
                if let Some(entry) = self.entries.get_mut(tree) {
                    entry.exclude(inner);
                }
            }
        }
    }

    /// Is there a request with this name?
    pub(crate) fn is_asked(&self, inner: &Path, is_directory: bool) -> bool {
        let entry = self.entries.get(inner);
        entry.is_some_and(|entry| entry.copy.is_directory == is_directory)
    }

    /// Files below a directory whose copy failed.
    pub(crate) fn failures(&self, below: &Path) -> Vec<(PathBuf, Errno)> {
        let failed = self.entries.values().filter_map(|entry| match &entry.state {
            State::Ended(failed) => Some(failed),
            _ => None,
        });
        let failed = failed.flatten().filter(|(path, _)| path.starts_with(below));
        failed.map(|(path, errno)| (path.clone(), *errno)).collect()
    }

    /// Ends a request and, unless it is complete, drops it. False while a worker copies it.
    pub(crate) fn terminate(&mut self, meant: &Selection) -> bool {
        let (name, part) = match meant {
            Selection::Whole { inner, .. } => (inner, None),
            Selection::Part { tree, inner } => (tree, Some(inner)),
        };
        let Some(entry) = self.entries.get_mut(name) else {
            return true;
        };
        if let Some(part) = part {
            return entry.terminate_part(part);
        }
        match &entry.state {
            State::Copying(cancelled, _) => {
                cancelled.store(true, Ordering::SeqCst);
                entry.state = State::Terminating;
                false
            }
            State::Terminating => false,
            State::Ended(_) if entry.is_delivered => true,
            State::Deferred | State::Queued | State::Ended(_) => {
                self.entries.remove(name);
                true
            }
        }
    }

    /// Removes the request of this name, and its failure as part of a directory.
    pub(crate) fn drop_entry(&mut self, inner: &Path) {
        self.entries.remove(inner);
        for above in inner.ancestors() {
            let Some(entry) = self.entries.get_mut(above) else {
                continue;
            };
            if let State::Ended(failed) = &mut entry.state {
                entry.files.remove(inner);
                failed.remove(inner);
            }
        }
    }

    /// Cancels running copies that are not wanted and removes waiting ones from the queue.
    pub(crate) fn stop(&mut self, is_wanted: impl Fn(&Copy) -> bool) {
        for entry in self.entries.values_mut() {
            if let State::Copying(cancelled, _) = &entry.state
                && !is_wanted(&entry.copy)
            {
                cancelled.store(true, Ordering::SeqCst);
                entry.requeue = false;
            }
        }
        let entries = &self.entries;
        let waits =
            |inner: &PathBuf| entries.get(inner).is_some_and(|entry| is_wanted(&entry.copy));
        self.queue.retain(|(inner, _)| waits(inner));
    }

    /// The entry of a file: its own or that of its directory.
    fn entry_of(&self, inner: &Path) -> Option<&Entry> {
        let mut entries = inner.ancestors().filter_map(|above| self.entries.get(above));
        entries.find(|entry| match entry.copy.is_directory {
            true => entry.files.contains(inner),
            false => entry.copy.inner == inner,
        })
    }

    /// The request of this directory.
    fn tree(&self, inner: &Path) -> Option<&Entry> {
        self.entries.get(inner).filter(|entry| entry.copy.is_directory)
    }

    /// The requested directory of this path. A directory is listed again when it is copied.
    fn part_of(&self, inner: &Path) -> Option<&Entry> {
        let mut above = inner.ancestors().skip(1);
        let entry = above.find_map(|above| {
            let entry = self.entries.get(above)?;
            entry.copy.is_directory.then_some(entry)
        })?;
        let is_part = match &entry.state {
            State::Ended(_) => entry.files.iter().any(|file| file.starts_with(inner)),
            State::Terminating => false,
            State::Deferred | State::Queued | State::Copying(..) => true,
        };
        (is_part && !entry.copy.leaves_out(inner)).then_some(entry)
    }

    /// The requests of this name and below it.
    fn below(&self, inner: &Path) -> impl Iterator<Item = &Entry> {
        let from = self.entries.range(inner.to_owned()..);
        let below = from.take_while(move |(name, _)| name.starts_with(inner));
        below.map(|(_, entry)| entry)
    }
}

impl Entry {
    /// Excludes a path from the directory. Its copy continues without that path.
    fn exclude(&mut self, inner: &Path) {
        self.copy.left_out.insert(inner.to_owned());
        let is_left = |file: &Path| !file.starts_with(inner);
        if let State::Ended(failed) = &mut self.state {
            // Copied files stay known.
            self.files.retain(|file| is_left(file) || !has_failed(failed, file));
            failed.retain(|file, _| is_left(file));
        } else {
            self.files.retain(|file| is_left(file));
        }
    }

    /// As [`RequestTable::terminate`]. The copy is cancelled and restarted without the part. It
    /// skips files already copied.
    fn terminate_part(&mut self, inner: &Path) -> bool {
        if !self.copy.leaves_out(inner) {
            self.exclude(inner);
            if let State::Copying(cancelled, _) = &self.state {
                cancelled.store(true, Ordering::SeqCst);
                self.requeue = true;
            }
        }
        !self.requeue
    }

    fn whole(&self) -> Selection {
        let copy = &self.copy;
        Selection::Whole { inner: copy.inner.clone(), is_directory: copy.is_directory }
    }

    /// Is it a stage-out that is not complete? The end of the job copies it.
    fn is_undelivered(&self) -> bool {
        self.copy.direction == Direction::Out && !self.is_delivered
    }

    fn is_pending(&self) -> bool {
        matches!(self.state, State::Queued | State::Copying(..) | State::Terminating)
    }

    fn counts(&self) -> Counts {
        if !self.copy.is_directory {
            return self.counts_of(&self.copy.inner);
        }
        let all = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
        let mut counts = Counts::default();
        match &self.state {
            State::Deferred => counts.deferred = all,
            State::Queued | State::Terminating => counts.pending = all,
            State::Copying(_, arrived) => {
                // `arrived` includes links. The directory is complete only when its copy ends.
                let arrived = arrived.load(Ordering::Relaxed);
                counts.complete = arrived.min(all.saturating_sub(1));
                counts.pending = all - counts.complete;
            }
            State::Ended(failed) => {
                let of_all = self.files.iter().filter(|file| has_failed(failed, file));
                counts.failed = u32::try_from(of_all.count()).unwrap_or(u32::MAX);
                counts.complete = all - counts.failed;
            }
        }
        counts
    }

    fn counts_of(&self, inner: &Path) -> Counts {
        let mut counts = Counts::default();
        *match &self.state {
            State::Deferred => &mut counts.deferred,
            State::Queued | State::Copying(..) | State::Terminating => &mut counts.pending,
            State::Ended(failed) if has_failed(failed, inner) => &mut counts.failed,
            State::Ended(_) => &mut counts.complete,
        } = 1;
        counts
    }
}

/// Has the file or a directory above it failed?
fn has_failed(failed: &FailedFiles, file: &Path) -> bool {
    !failed.is_empty() && file.ancestors().any(|path| failed.contains_key(path))
}

#[cfg(test)]
mod tests;
