//! Versions whose commands wait or run, and the counts.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

use forebay_host::process::GroupNumber;

use super::Handled;

/// One version that one command is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) rule: usize,
    pub(super) path: PathBuf,
    pub(super) version: u64,
}

#[derive(Default)]
pub(super) struct Queue {
    next: u64,
    items: BTreeMap<u64, Item>,
    places: HashMap<(usize, PathBuf), u64>,
    /// Commands of one rule for one file never run at the same time.
    busy: HashSet<(usize, PathBuf)>,
    handled: Handled,
    pub(super) running: Vec<GroupNumber>,
    pub(super) caught_up: u64,
    pub(super) watch_ended: bool,
    /// No command is begun any more.
    pub(super) stopped: bool,
}

impl Queue {
    /// A version was closed. One of the same file that waits is none any more.
    pub(super) fn add(&mut self, item: Item) {
        self.handled.closed += 1;
        let key = (item.rule, item.path.clone());
        if let Some(place) = self.places.insert(key, self.next) {
            self.items.remove(&place);
            self.handled.superseded += 1;
        }
        self.items.insert(self.next, item);
        self.next += 1;
    }

    pub(super) fn take(&mut self) -> Option<Item> {
        let is_free = |item: &Item| !self.busy.contains(&(item.rule, item.path.clone()));
        let mut items = self.items.iter();
        let place = items
            .find(|(_, item)| is_free(item))
            .map(|(place, _)| *place)?;
        let item = self.items.remove(&place)?;
        let key = (item.rule, item.path.clone());
        self.places.remove(&key);
        self.busy.insert(key);
        Some(item)
    }

    /// What came out; none if the file was gone.
    pub(super) fn put_down(&mut self, item: &Item, outcome: Option<Result<(), String>>) {
        self.busy.remove(&(item.rule, item.path.clone()));
        match outcome {
            None => self.handled.superseded += 1,
            Some(Ok(())) => self.handled.done += 1,
            Some(Err(reason)) => {
                self.handled.failed += 1;
                let path = item.path.to_string_lossy().into_owned();
                self.handled.failures.push((path, item.version, reason));
            }
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.items.is_empty() && self.busy.is_empty()
    }

    pub(super) fn closed(&self) -> u64 {
        self.handled.closed
    }

    /// The account; what waits still will not be run.
    pub(super) fn handled(&self) -> Handled {
        let not_begun = "it was not begun: we were to stop";
        let mut handled = self.handled.clone();
        handled.not_run = self.items.len() as u64;
        handled.failures.extend(self.items.values().map(|item| {
            let path = item.path.to_string_lossy().into_owned();
            (path, item.version, not_begun.to_owned())
        }));
        handled
    }
}
