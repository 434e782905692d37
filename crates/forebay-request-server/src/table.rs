//! The requests and their states. Never accesses the file system.
//! Assumes absolute names with links resolved. Its caller holds the lock.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
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
}

#[derive(Debug, Default)]
pub(crate) struct RequestTable {
    /// Requests by name in the burst buffer. Paths below a directory directly follow it.
    entries: BTreeMap<PathBuf, Entry>,
    queue: VecDeque<(PathBuf, u64)>,
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
            let ended = |entry: &Entry| matches!(entry.state, State::Ended(_));
            let below = self.below(&name).filter(|entry| ended(entry));
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
        let entry = Entry { copy, files, state, serial: self.serial, requeue: false };
        self.entries.insert(name, entry);
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
        let is_complete = failed.is_empty();
        entry.state = State::Ended(failed);
        match is_complete {
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
        if let Some(entry) = self.entries.get(inner).filter(|entry| entry.copy.is_directory) {
            return Some(entry.counts());
        }
        let parts = self.part_of(inner).into_iter().flat_map(|entry| {
            let files = entry.files.iter().filter(|file| file.starts_with(inner));
            let files = files.filter(|file| !self.entries.contains_key(*file));
            files.map(|file| entry.counts_of(file))
        });
        let all = self.below(inner).map(Entry::counts).chain(parts);
        all.reduce(|mut sum, counts| {
            sum += counts;
            sum
        })
    }

    /// Is it a stage-in, so that the file need not exist in the burst buffer?
    pub(crate) fn is_stage_in(&self, inner: &Path) -> bool {
        let entry = self.entry_of(inner);
        entry.is_some_and(|entry| entry.copy.direction == Direction::In)
    }

    /// Is it to be copied at the end of the job? A directory counts only as a whole.
    pub(crate) fn is_deferred(&self, inner: &Path, is_directory: bool) -> bool {
        let entry = match is_directory {
            true => self.entries.get(inner),
            false => self.entry_of(inner),
        };
        entry.is_some_and(|entry| matches!(entry.state, State::Deferred))
    }

    /// The selection of a name: the request of that name. Otherwise the part of a requested
    /// directory and, for a directory, all requests in it.
    pub(crate) fn select(&self, inner: &Path, is_directory: bool) -> Vec<Selection> {
        let whole = |entry: &Entry| Selection::Whole {
            inner: entry.copy.inner.clone(),
            is_directory: entry.copy.is_directory,
        };
        let own = self.entries.get(inner);
        if let Some(entry) = own.filter(|entry| entry.copy.is_directory == is_directory) {
            return vec![whole(entry)];
        }
        let mut meant = Vec::new();
        if is_directory {
            meant.extend(self.below(inner).map(whole));
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
            State::Ended(failed) if failed.is_empty() => true,
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
            self.files.retain(|file| is_left(file) || !failed.contains_key(file));
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
                let of_all = failed.keys().filter(|path| self.files.contains(*path));
                let of_all = u32::try_from(of_all.count()).unwrap_or(u32::MAX);
                counts.complete = all - of_all;
                counts.failed = u32::try_from(failed.len()).unwrap_or(u32::MAX);
            }
        }
        counts
    }

    fn counts_of(&self, inner: &Path) -> Counts {
        let mut counts = Counts::default();
        *match &self.state {
            State::Deferred => &mut counts.deferred,
            State::Queued | State::Copying(..) | State::Terminating => &mut counts.pending,
            State::Ended(failed) if failed.contains_key(inner) => &mut counts.failed,
            State::Ended(_) => &mut counts.complete,
        } = 1;
        counts
    }
}

#[cfg(test)]
mod tests;
