//! What was asked for and how far it is. Touches nothing of the machine.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_requests::Counts;

use crate::Direction;

/// The number of an error, as in errno(3).
pub(super) type Errno = i32;

/// A file to be copied, or one that a directory holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Copy {
    pub(super) direction: Direction,
    /// In the burst buffer; under this name it is known.
    pub(super) inner: PathBuf,
    /// On the file system.
    pub(super) outer: PathBuf,
}

impl Copy {
    /// What is made.
    pub(super) fn target(&self) -> &Path {
        match self.direction {
            Direction::In => &self.inner,
            Direction::Out => &self.outer,
        }
    }
}

/// A copy that a worker has in hand.
#[derive(Debug, Clone)]
pub(super) struct Task {
    pub(super) copy: Copy,
    /// No two tasks have the same.
    pub(super) serial: u64,
    pub(super) cancelled: Arc<AtomicBool>,
    /// The directory that was asked for and holds it.
    of: Option<PathBuf>,
}

#[derive(Debug, Clone)]
enum State {
    Deferred,
    Queued,
    Copying(Arc<AtomicBool>),
    /// As before, but to be forgotten.
    Terminating,
    Complete,
    Failed(Errno),
}

#[derive(Debug)]
struct Item {
    copy: Copy,
    state: State,
    serial: u64,
    of: Option<PathBuf>,
}

/// A directory that was asked for as a whole.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    pub(super) copy: Copy,
    /// Directories at the target that are made for it: each with the one whose mode and times it gets,
    /// parents first.
    pub(super) made: Vec<(PathBuf, PathBuf)>,
    counts: Counts,
    /// Files that are not copied yet, whatever becomes of them.
    uncopied: usize,
    is_deferred: bool,
    is_finished: bool,
}

/// What a directory was found to hold.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) files: Vec<Copy>,
    /// What cannot be staged.
    pub(super) refused: Vec<(Copy, Errno)>,
    pub(super) made: Vec<(PathBuf, PathBuf)>,
}

#[derive(Debug, Default)]
pub(super) struct Book {
    items: BTreeMap<PathBuf, Item>,
    trees: BTreeMap<PathBuf, Tree>,
    queue: VecDeque<(PathBuf, u64)>,
    serial: u64,
}

impl Book {
    /// Notes a file to be copied now, or at the job's end.
    pub(super) fn add(&mut self, copy: Copy, is_deferred: bool) {
        let state = if is_deferred {
            State::Deferred
        } else {
            State::Queued
        };
        self.put(copy, state, None);
    }

    /// Notes a directory and all that was found in it. Returned is one of which nothing is to be copied, so
    /// that it is to be finished at once.
    pub(super) fn add_tree(&mut self, copy: Copy, found: Found, is_deferred: bool) -> Option<Tree> {
        let uncopied = found.files.len();
        let name = copy.inner.clone();
        self.drop_tree(&name);
        let tree = Tree {
            copy,
            made: found.made,
            counts: Counts::default(),
            uncopied,
            is_deferred,
            is_finished: is_deferred,
        };
        self.trees.insert(name.clone(), tree);
        for copy in found.files {
            let state = if is_deferred {
                State::Deferred
            } else {
                State::Queued
            };
            self.put(copy, state, Some(name.clone()));
        }
        for (copy, errno) in found.refused {
            self.put(copy, State::Failed(errno), Some(name.clone()));
        }
        let tree = self.trees.get(&name);
        tree.filter(|_| uncopied == 0 && !is_deferred).cloned()
    }

    /// Is a file of this name being staged, or waiting for it?
    pub(super) fn is_busy(&self, inner: &Path) -> bool {
        self.items.get(inner).is_some_and(|item| item.is_pending())
    }

    /// Is anything of this directory being staged?
    pub(super) fn is_tree_busy(&self, inner: &Path) -> bool {
        self.trees.get(inner).is_some_and(|tree| !tree.is_finished)
            || self.below(inner).any(|(_, item)| item.is_pending())
    }

    /// What is to be copied next; the worker says [`Book::ended`] of it.
    pub(super) fn take(&mut self) -> Option<Task> {
        while let Some((inner, serial)) = self.queue.pop_front() {
            let Some(item) = self.items.get_mut(&inner) else {
                continue; // terminated
            };
            if item.serial != serial || !matches!(item.state, State::Queued) {
                continue; // asked for anew
            }
            let cancelled = Arc::new(AtomicBool::new(false));
            item.state = State::Copying(Arc::clone(&cancelled));
            return Some(Task {
                copy: item.copy.clone(),
                serial,
                cancelled,
                of: item.of.clone(),
            });
        }
        None
    }

    /// How many copies wait for a worker, at most.
    pub(super) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// The copy has ended. Was it the last of its directory, so that this one is to be finished before
    /// [`Book::ended`] is said?
    pub(super) fn copied(&mut self, task: &Task) -> Option<Tree> {
        let tree = self.trees.get_mut(task.of.as_deref()?)?;
        tree.uncopied = tree.uncopied.saturating_sub(1);
        (tree.uncopied == 0 && !tree.is_finished).then(|| tree.clone())
    }

    /// Nothing of the directory is in progress any more.
    pub(super) fn tree_finished(&mut self, tree: &Tree, failed: Option<Errno>) {
        let inner = &tree.copy.inner;
        if let Some(errno) = failed {
            self.put(
                tree.copy.clone(),
                State::Failed(errno),
                Some(inner.to_owned()),
            );
        }
        if let Some(tree) = self.trees.get_mut(inner) {
            tree.is_finished = true;
        }
    }

    /// What became of a task. Returns what was asked for and is complete with it.
    pub(super) fn ended(&mut self, task: &Task, became: Result<(), Errno>) -> Vec<PathBuf> {
        let inner = &task.copy.inner;
        let Some(item) = self.items.get(inner).filter(|i| i.serial == task.serial) else {
            return Vec::new();
        };
        if matches!(item.state, State::Terminating) {
            self.forget(inner);
            return Vec::new();
        }
        self.set(
            inner,
            match became {
                Ok(()) => State::Complete,
                Err(errno) => State::Failed(errno),
            },
        );
        let mut complete = Vec::new();
        if became.is_ok() && task.of.is_none() {
            complete.push(inner.clone());
        }
        if let Some(name) = &task.of {
            complete.extend(self.is_complete(name).then(|| name.clone()));
        }
        complete
    }

    /// Has everything of a directory arrived?
    pub(super) fn is_complete(&self, inner: &Path) -> bool {
        let tree = self.trees.get(inner);
        tree.is_some_and(|tree| {
            tree.is_finished && tree.counts.pending + tree.counts.failed + tree.counts.deferred == 0
        })
    }

    /// One file.
    pub(super) fn counts_of(&self, inner: &Path) -> Option<Counts> {
        let mut counts = Counts::default();
        *self.items.get(inner)?.state.counted_in(&mut counts) += 1;
        Some(counts)
    }

    /// A directory: what was asked for as a whole, else all that was asked for in it.
    pub(super) fn counts_of_tree(&self, inner: &Path) -> Option<Counts> {
        if let Some(tree) = self.trees.get(inner) {
            return Some(tree.counts);
        }
        let mut counts = Counts::default();
        for (_, item) in self.below(inner) {
            *item.state.counted_in(&mut counts) += 1;
        }
        (counts != Counts::default()).then_some(counts)
    }

    /// Is this file to come into the burst buffer, so that it need not be there?
    pub(super) fn is_in(&self, inner: &Path) -> bool {
        let item = self.items.get(inner);
        item.is_some_and(|item| item.copy.direction == Direction::In)
    }

    /// A file that is to be copied at the job's end, and not as part of a directory.
    pub(super) fn deferred(&self, inner: &Path) -> Option<Copy> {
        let item = self.items.get(inner).filter(|item| item.of.is_none())?;
        matches!(item.state, State::Deferred).then(|| item.copy.clone())
    }

    /// The same of a directory that was asked for as a whole.
    pub(super) fn deferred_tree(&self, inner: &Path) -> Option<Copy> {
        let tree = self.trees.get(inner).filter(|tree| tree.is_deferred)?;
        Some(tree.copy.clone())
    }

    /// Files below a directory, with what became of those that failed.
    pub(super) fn failures(&self, below: &Path) -> Vec<(Copy, Errno)> {
        let failed = self.below(below).filter_map(|(_, item)| match item.state {
            State::Failed(errno) => Some((item.copy.clone(), errno)),
            _ => None,
        });
        failed.collect()
    }

    /// Ends the stage of a file and forgets it, unless it is complete. Returns false while a worker still
    /// has it.
    pub(super) fn terminate(&mut self, inner: &Path) -> bool {
        match self.items.get(inner).map(|item| &item.state) {
            Some(State::Copying(cancelled)) => {
                cancelled.store(true, Ordering::SeqCst);
                self.set(inner, State::Terminating);
                false
            }
            Some(State::Terminating) => false,
            Some(State::Complete) | None => true,
            Some(State::Deferred | State::Queued | State::Failed(_)) => {
                self.forget(inner);
                true
            }
        }
    }

    /// The same for a directory.
    pub(super) fn terminate_tree(&mut self, inner: &Path) -> bool {
        if let Some(tree) = self.trees.get_mut(inner) {
            (tree.is_finished, tree.is_deferred) = (true, false);
        }
        let names: Vec<_> = self.below(inner).map(|(name, _)| name.clone()).collect();
        let mut ended = true;
        for name in names {
            ended &= self.terminate(&name);
        }
        let holds_nothing = |tree: &Tree| tree.counts.complete == 0;
        if ended && self.trees.get(inner).is_some_and(holds_nothing) {
            self.trees.remove(inner);
        }
        ended
    }

    /// Forgets a file.
    pub(super) fn forget(&mut self, inner: &Path) {
        let Some(item) = self.items.remove(inner) else {
            return;
        };
        self.count(&item, false);
        let tree = item.of.as_ref().and_then(|of| self.trees.get_mut(of));
        if let (State::Queued, Some(tree)) = (&item.state, tree) {
            tree.uncopied = tree.uncopied.saturating_sub(1);
            tree.is_finished |= tree.uncopied == 0;
        }
    }

    /// Forgets a directory and what was asked for with it.
    pub(super) fn drop_tree(&mut self, inner: &Path) {
        let of_it = |(name, item): (&PathBuf, &Item)| {
            (item.of.as_deref() == Some(inner)).then(|| name.clone())
        };
        let names: Vec<_> = self.below(inner).filter_map(of_it).collect();
        for name in names {
            self.forget(&name);
        }
        self.trees.remove(inner);
    }

    /// Everything that is in progress is to stop; what waits is not begun.
    pub(super) fn stop(&mut self, is_wanted: impl Fn(&Copy) -> bool) {
        for item in self.items.values() {
            if let State::Copying(cancelled) = &item.state
                && !is_wanted(&item.copy)
            {
                cancelled.store(true, Ordering::SeqCst);
            }
        }
        let items = &self.items;
        let waits = |(inner, _): &(PathBuf, u64)| items.get(inner).is_some_and(|i| is_wanted(&i.copy));
        self.queue.retain(waits);
    }

    /// The file and all below it.
    fn below(&self, inner: &Path) -> impl Iterator<Item = (&PathBuf, &Item)> {
        let all = self.items.range(inner.to_owned()..);
        all.take_while(move |(name, _)| name.starts_with(inner))
    }

    fn put(&mut self, copy: Copy, state: State, of: Option<PathBuf>) {
        self.forget(&copy.inner);
        self.serial += 1;
        if matches!(state, State::Queued) {
            self.queue.push_back((copy.inner.clone(), self.serial));
        }
        let item = Item {
            state,
            serial: self.serial,
            of,
            copy,
        };
        self.count(&item, true);
        self.items.insert(item.copy.inner.clone(), item);
    }

    fn set(&mut self, inner: &Path, state: State) {
        if let Some(mut item) = self.items.remove(inner) {
            self.count(&item, false);
            item.state = state;
            self.count(&item, true);
            self.items.insert(inner.to_owned(), item);
        }
    }

    /// In its directory, or no longer.
    fn count(&mut self, item: &Item, is_there: bool) {
        let Some(tree) = item.of.as_ref().and_then(|of| self.trees.get_mut(of)) else {
            return;
        };
        let count = item.state.counted_in(&mut tree.counts);
        *count = if is_there {
            *count + 1
        } else {
            count.saturating_sub(1)
        };
    }
}

impl Item {
    fn is_pending(&self) -> bool {
        matches!(
            self.state,
            State::Queued | State::Copying(_) | State::Terminating
        )
    }
}

impl State {
    fn counted_in<'a>(&self, counts: &'a mut Counts) -> &'a mut u32 {
        match self {
            Self::Deferred => &mut counts.deferred,
            Self::Queued | Self::Copying(_) | Self::Terminating => &mut counts.pending,
            Self::Complete => &mut counts.complete,
            Self::Failed(_) => &mut counts.failed,
        }
    }
}

#[cfg(test)]
mod tests;
