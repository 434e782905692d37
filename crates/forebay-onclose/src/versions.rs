//! A queue of versions: at most one version of a file waits and at most one is in progress.
//!
//! Assumes that the caller holds a lock. Never accesses the file system.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use forebay_host::close_watch::Closed;

/// A closed version of a file that matches a rule.
#[derive(Debug, Clone)]
pub(crate) struct Version {
    pub(crate) rule: usize,
    pub(crate) closed: Closed,
}

/// Rule and file. Rules for the newest file only have an empty path: their files replace each other.
type Key = (usize, PathBuf);

/// Versions in the order in which they were closed.
#[derive(Default)]
pub(crate) struct VersionQueue {
    /// Whether a rule is for the newest file only; false for rules beyond the end.
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

    /// Adds a version. Returns the waiting version that it replaces.
    pub(crate) fn add(&mut self, version: Version) -> Option<Version> {
        let place = self.places.insert(self.key(&version), self.next);
        let replaced = place.and_then(|place| self.waiting.remove(&place));
        self.waiting.insert(self.next, version);
        self.next += 1;
        replaced
    }

    /// Returns the first waiting version whose key is not in progress. The version is in progress
    /// until [`VersionQueue::complete`] or [`VersionQueue::put_back`].
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

    /// Removes a version from those in progress. Returns its number.
    pub(crate) fn complete(&mut self, version: &Version) -> Option<u64> {
        self.in_progress.remove(&self.key(version))
    }

    /// Lets a version in progress wait again, with its old number. `take` no longer returns it.
    pub(crate) fn put_back(&mut self, version: &Version) {
        let place = self.complete(version);
        self.waiting.extend(place.map(|place| (place, version.clone())));
    }

    /// Is no version with a smaller number waiting or in progress?
    pub(crate) fn is_done_before(&self, number: u64) -> bool {
        let mut left = self.waiting.keys().chain(self.in_progress.values());
        left.all(|place| *place >= number)
    }

    /// The number of the next version to be added.
    pub(crate) fn next_number(&self) -> u64 {
        self.next
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.in_progress.is_empty()
    }

    pub(crate) fn waiting(&self) -> impl ExactSizeIterator<Item = &Version> {
        self.waiting.values()
    }
}
