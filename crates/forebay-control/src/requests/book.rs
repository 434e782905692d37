//! What was asked for and how far it is. Touches nothing of the machine.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use forebay_requests::Counts;

use crate::Direction;

/// The number of an error, as in errno(3).
pub(super) type Errno = i32;

/// A file or a directory to be copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Copy {
    pub(super) direction: Direction,
    /// In the burst buffer; under this name it is known.
    pub(super) inner: PathBuf,
    /// On the file system.
    pub(super) outer: PathBuf,
    pub(super) is_directory: bool,
}

/// A copy that a worker has in hand.
#[derive(Debug, Clone)]
pub(super) struct Task {
    pub(super) copy: Copy,
    /// No two tasks have the same.
    pub(super) serial: u64,
    pub(super) cancelled: Arc<AtomicBool>,
    /// Files that have arrived.
    pub(super) arrived: Arc<AtomicU32>,
}

/// Files that did not arrive, as they are called in the burst buffer.
pub(super) type Failed = BTreeMap<PathBuf, Errno>;

#[derive(Debug)]
enum State {
    Deferred,
    Queued,
    Copying(Arc<AtomicBool>, Arc<AtomicU32>),
    /// As before, but to be forgotten.
    Terminating,
    Ended(Failed),
}

/// Something that was asked for.
#[derive(Debug)]
struct Unit {
    copy: Copy,
    /// What a directory held when it was asked for: files by their names in the burst buffer.
    files: BTreeSet<PathBuf>,
    state: State,
    serial: u64,
}

#[derive(Debug, Default)]
pub(super) struct Book {
    /// By name in the burst buffer. What is below a directory follows it at once.
    units: BTreeMap<PathBuf, Unit>,
    queue: VecDeque<(PathBuf, u64)>,
    serial: u64,
}

impl Copy {
    /// What is read, what is made.
    pub(super) fn ends(&self) -> (&Path, &Path) {
        match self.direction {
            Direction::In => (&self.outer, &self.inner),
            Direction::Out => (&self.inner, &self.outer),
        }
    }
}

impl Book {
    /// Notes what is to be copied, now or at the job's end. `files` are those that a directory holds.
    pub(super) fn add(&mut self, copy: Copy, files: BTreeSet<PathBuf>, is_deferred: bool) {
        let name = copy.inner.clone();
        // What became of it before is of interest no more.
        self.forget(&name);
        if copy.is_directory {
            let ended = |unit: &Unit| matches!(unit.state, State::Ended(_));
            let below = self.below(&name).filter(|unit| ended(unit));
            let names: Vec<_> = below.map(|unit| unit.copy.inner.clone()).collect();
            for name in names {
                self.units.remove(&name);
            }
        }
        self.serial += 1;
        let state = if is_deferred {
            State::Deferred
        } else {
            self.queue.push_back((name.clone(), self.serial));
            State::Queued
        };
        let unit = Unit {
            copy,
            files,
            state,
            serial: self.serial,
        };
        self.units.insert(name, unit);
    }

    /// Is something of it being copied, or waiting for it?
    pub(super) fn is_busy(&self, inner: &Path, is_directory: bool) -> bool {
        if is_directory {
            let above = inner.ancestors().filter_map(|above| self.units.get(above));
            let mut trees = above.filter(|unit| unit.copy.is_directory);
            return trees.any(Unit::is_pending) || self.below(inner).any(Unit::is_pending);
        }
        self.holding(inner).is_some_and(Unit::is_pending)
    }

    /// What is to be copied next; the worker says [`Book::ended`] of it.
    pub(super) fn take(&mut self) -> Option<Task> {
        while let Some((inner, serial)) = self.queue.pop_front() {
            let Some(unit) = self.units.get_mut(&inner) else {
                continue; // terminated
            };
            if unit.serial != serial || !matches!(unit.state, State::Queued) {
                continue; // asked for anew
            }
            let task = Task {
                copy: unit.copy.clone(),
                serial,
                cancelled: Arc::default(),
                arrived: Arc::default(),
            };
            unit.state = State::Copying(Arc::clone(&task.cancelled), Arc::clone(&task.arrived));
            return Some(task);
        }
        None
    }

    /// How many wait for a worker, at most.
    pub(super) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// What became of a task. Is it complete?
    pub(super) fn ended(&mut self, task: &Task, failed: Failed) -> bool {
        let inner = &task.copy.inner;
        let Some(unit) = self
            .units
            .get_mut(inner)
            .filter(|u| u.serial == task.serial)
        else {
            return false;
        };
        if matches!(unit.state, State::Terminating) {
            self.units.remove(inner);
            return false;
        }
        let is_complete = failed.is_empty();
        unit.state = State::Ended(failed);
        is_complete
    }

    /// Files in each state: of what was asked for under this name; of a file, also as part of a directory; of a
    /// directory, also all that was asked for in it.
    pub(super) fn counts(&self, inner: &Path, is_directory: bool) -> Option<Counts> {
        if !is_directory {
            let unit = self.holding(inner)?;
            return Some(unit.counts_of(inner));
        }
        if let Some(unit) = self.units.get(inner).filter(|unit| unit.copy.is_directory) {
            return Some(unit.counts());
        }
        let below = self.below(inner).map(Unit::counts);
        below.reduce(|mut sum, counts| {
            sum += counts;
            sum
        })
    }

    /// Is it to come into the burst buffer, so that it need not be there?
    pub(super) fn is_in(&self, inner: &Path) -> bool {
        let unit = self.holding(inner);
        unit.is_some_and(|unit| unit.copy.direction == Direction::In)
    }

    /// What is to be copied at the job's end, if that was asked for under this name.
    pub(super) fn deferred(&self, inner: &Path, is_directory: bool) -> Option<Copy> {
        let unit = self.units.get(inner)?;
        let is_deferred = matches!(unit.state, State::Deferred);
        (is_deferred && unit.copy.is_directory == is_directory).then(|| unit.copy.clone())
    }

    /// Was it asked for under this name?
    pub(super) fn is_asked(&self, inner: &Path, is_directory: bool) -> bool {
        let unit = self.units.get(inner);
        unit.is_some_and(|unit| unit.copy.is_directory == is_directory)
    }

    /// Files below a directory that did not arrive.
    pub(super) fn failures(&self, below: &Path) -> Vec<(PathBuf, Errno)> {
        let failed = self.units.values().filter_map(|unit| match &unit.state {
            State::Ended(failed) => Some(failed),
            _ => None,
        });
        let failed = failed.flatten().filter(|(path, _)| path.starts_with(below));
        failed.map(|(path, errno)| (path.clone(), *errno)).collect()
    }

    /// Ends what was asked for under this name and forgets it, unless it is complete. Returns false while a
    /// worker still has it.
    pub(super) fn terminate(&mut self, inner: &Path) -> bool {
        let Some(unit) = self.units.get_mut(inner) else {
            return true;
        };
        match &unit.state {
            State::Copying(cancelled, _) => {
                cancelled.store(true, Ordering::SeqCst);
                unit.state = State::Terminating;
                false
            }
            State::Terminating => false,
            State::Ended(failed) if failed.is_empty() => true,
            State::Deferred | State::Queued | State::Ended(_) => {
                self.units.remove(inner);
                true
            }
        }
    }

    /// Forgets what was asked for under this name, and that a directory could not bring it.
    pub(super) fn forget(&mut self, inner: &Path) {
        self.units.remove(inner);
        for above in inner.ancestors() {
            let Some(unit) = self.units.get_mut(above) else {
                continue;
            };
            if let State::Ended(failed) = &mut unit.state {
                unit.files.remove(inner);
                failed.remove(inner);
            }
        }
    }

    /// What is in progress and not wanted is to stop; what waits and is not wanted is not begun.
    pub(super) fn stop(&mut self, is_wanted: impl Fn(&Copy) -> bool) {
        for unit in self.units.values() {
            if let State::Copying(cancelled, _) = &unit.state
                && !is_wanted(&unit.copy)
            {
                cancelled.store(true, Ordering::SeqCst);
            }
        }
        let units = &self.units;
        let waits = |inner: &PathBuf| units.get(inner).is_some_and(|unit| is_wanted(&unit.copy));
        self.queue.retain(|(inner, _)| waits(inner));
    }

    /// The unit that tells of a file: its own, or the directory it was part of.
    fn holding(&self, inner: &Path) -> Option<&Unit> {
        let mut units = inner.ancestors().filter_map(|above| self.units.get(above));
        units.find(|unit| match unit.copy.is_directory {
            true => unit.files.contains(inner),
            false => unit.copy.inner == inner,
        })
    }

    /// What was asked for under this name or below it.
    fn below(&self, inner: &Path) -> impl Iterator<Item = &Unit> {
        let from = self.units.range(inner.to_owned()..);
        let below = from.take_while(move |(name, _)| name.starts_with(inner));
        below.map(|(_, unit)| unit)
    }
}

impl Unit {
    fn is_pending(&self) -> bool {
        matches!(
            self.state,
            State::Queued | State::Copying(..) | State::Terminating
        )
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
                // Links arrive too, and are not counted; the directory is not done before its end.
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
