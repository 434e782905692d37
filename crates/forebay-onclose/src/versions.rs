//! Versions of files that wait or are in progress: of one file, at most one of each.
//!
//! Assumes a lock around it. Never touches the machine.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use forebay_host::close_watch::Closed;

/// A closed version of a file that matches a rule.
#[derive(Debug, Clone)]
pub(crate) struct Version {
    pub(crate) rule: usize,
    pub(crate) closed: Closed,
}

/// Rule and file; of a rule that wants the newest file only, no file: its files replace each other.
type Key = (usize, PathBuf);

/// The versions, in the order in which they were closed.
#[derive(Default)]
pub(crate) struct VersionQueue {
    /// Rules that want the newest file only; those behind the last want all.
    newest_only: Vec<bool>,
    next: u64,
    waiting: BTreeMap<u64, Version>,
    places: HashMap<Key, u64>,
    in_progress: HashMap<Key, u64>,
}

impl VersionQueue {
    pub(crate) fn new(newest_only: Vec<bool>) -> Self {
        Self { newest_only, ..Self::default() }
    }

    fn key(&self, version: &Version) -> Key {
        let newest_only = self.newest_only.get(version.rule).copied();
        let file = (!newest_only.unwrap_or_default()).then(|| version.closed.path.clone());
        (version.rule, file.unwrap_or_default())
    }

    /// Adds a version. Returns the waiting one that it replaces.
    pub(crate) fn add(&mut self, version: Version) -> Option<Version> {
        let place = self.places.insert(self.key(&version), self.next);
        let replaced = place.and_then(|place| self.waiting.remove(&place));
        self.waiting.insert(self.next, version);
        self.next += 1;
        replaced
    }

    /// The first waiting version with a key of which none is in progress. It is in progress until
    /// [`VersionQueue::complete`] or [`VersionQueue::put_back`].
    pub(crate) fn take(&mut self) -> Option<Version> {
        let is_free = |version: &Version| !self.in_progress.contains_key(&self.key(version));
        let free = self.waiting.iter().find(|(_, version)| is_free(version));
        let place = free.map(|(place, _)| *place)?;
        let version = self.waiting.remove(&place)?;
        let key = self.key(&version);
        self.places.remove(&key);
        self.in_progress.insert(key, place);
        Some(version)
    }

    /// Ends the progress of a version. Returns its place.
    pub(crate) fn complete(&mut self, version: &Version) -> Option<u64> {
        self.in_progress.remove(&self.key(version))
    }

    /// Lets a version in progress wait again at its place, although nobody takes it any more.
    pub(crate) fn put_back(&mut self, version: &Version) {
        let place = self.complete(version);
        self.waiting.extend(place.map(|place| (place, version.clone())));
    }

    /// Is no version with a smaller number left?
    pub(crate) fn is_done_before(&self, number: u64) -> bool {
        let mut left = self.waiting.keys().chain(self.in_progress.values());
        left.all(|place| *place >= number)
    }

    /// The number of the version that is added next.
    pub(crate) fn number(&self) -> u64 {
        self.next
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.in_progress.is_empty()
    }

    pub(crate) fn waiting(&self) -> impl ExactSizeIterator<Item = &Version> {
        self.waiting.values()
    }
}
