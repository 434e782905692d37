//! What is closed and not safe yet, what is safe, and the counts: what the threads of a drain share.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::time::Instant;

use forebay_host::closes::Closed;
use forebay_host::files;
use forebay_mover::Failure;
use serde::{Deserialize, Serialize};

use crate::pace::Pace;

/// How far a drain has come. Of all versions that were closed each is in one of the counts behind the first,
/// or is being copied.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainStatus {
    /// Versions that were closed.
    pub enqueued: u64,
    /// Those whose copy was begun.
    pub dequeued: u64,
    /// Versions that arrived.
    pub done: u64,
    /// Versions that did not.
    pub failed: u64,
    /// Versions that were written anew or removed before they had arrived.
    pub superseded: u64,
    /// Older ones that were left out because only the newest was asked for.
    pub skipped: u64,
    /// Versions that wait.
    pub waiting: u64,
    /// Versions beside all these, which match but which no stage_out line of type file or directory takes.
    pub not_staged: u64,
    /// Bytes of the versions that arrived.
    pub bytes: u64,
    /// Files whose last version did not arrive, and files and directories that cannot be watched, as far as they are
    /// there still: path and reason.
    pub failures: Vec<(String, String)>,
}

/// One version that goes by one rule.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) rule: usize,
    pub(super) closed: Closed,
}

/// What became of a version.
pub(super) enum Copied {
    /// It is at its destination.
    Done,
    /// It is not there any more as it was: when its next version is closed, that counts.
    Changed,
    /// It was stopped half way, and is left to stage-out.
    Stopped,
    /// It did not arrive.
    Failed(Failure),
}

/// A directory that was made at a destination, and the one that it stands for.
pub(super) struct Made {
    pub(super) target: PathBuf,
    pub(super) source: PathBuf,
}

/// Rule and file of which one version waits and one is copied at a time; of a rule that wants the newest only, no
/// file: they stand for each other.
type Of = (usize, PathBuf);

#[derive(Default)]
pub(super) struct Queue {
    /// Rules that want the newest file only; those behind the last want all.
    newest: Vec<bool>,
    next: u64,
    items: BTreeMap<u64, Item>,
    places: HashMap<Of, u64>,
    /// What is being copied.
    in_hand: BTreeMap<u64, Of>,
    status: DrainStatus,
    /// What did not arrive, by rule and file, and why.
    failed: BTreeMap<(usize, PathBuf), (Item, String)>,
    /// What cannot be watched, and why.
    unseen: BTreeMap<PathBuf, String>,
    /// The first that matched and goes nowhere.
    pub(super) first_not_staged: Option<PathBuf>,
    pub(super) made: Vec<Made>,
    /// When the last version had arrived.
    pub(super) last_safe: Option<Instant>,
    /// The watch has told all that was closed before this ticket.
    pub(super) caught_up: u64,
    /// The job is over: nothing more is begun.
    pub(super) over: bool,
    paces: HashMap<usize, Pace>,
}

impl Queue {
    pub(super) fn of(newest: Vec<bool>) -> Self {
        Self {
            newest,
            ..Self::default()
        }
    }

    fn of_item(&self, item: &Item) -> Of {
        let newest_only = self.newest.get(item.rule).is_some_and(|newest| *newest);
        let file = (!newest_only).then(|| item.closed.path.clone());
        (item.rule, file.unwrap_or_default())
    }

    /// A version was closed. An older one of it that waited is none any more. Of a rule that wants the newest
    /// only, what waited is left out.
    pub(super) fn add(&mut self, item: Item) {
        self.status.enqueued += 1;
        let place = self.places.insert(self.of_item(&item), self.next);
        match place.and_then(|place| self.items.remove(&place)) {
            Some(older) if older.closed.path == item.closed.path => self.status.superseded += 1,
            Some(_) => self.status.skipped += 1,
            None => {}
        }
        self.items.insert(self.next, item);
        self.next += 1;
    }

    /// A version was closed that matches, and that goes nowhere.
    pub(super) fn pass(&mut self, path: &Path) {
        self.status.not_staged += 1;
        self.first_not_staged.get_or_insert_with(|| path.to_owned());
    }

    /// The next version to be copied; none as long as there is none. Of one file one version is copied at a
    /// time, and of a rule that wants the newest only one file.
    pub(super) fn take(&mut self) -> Option<Item> {
        let is_free = |item: &Item| {
            let of = self.of_item(item);
            !self.in_hand.values().any(|hand| *hand == of)
        };
        let free = self.items.iter().find(|(_, item)| is_free(item));
        let place = free.map(|(place, _)| *place)?;
        let item = self.items.remove(&place)?;
        let of = self.of_item(&item);
        self.places.remove(&of);
        self.status.dequeued += 1;
        self.in_hand.insert(place, of);
        Some(item)
    }

    /// What was taken is in this state now.
    pub(super) fn put_down(&mut self, item: &Item, copied: Copied, now: Instant) {
        let of = self.of_item(item);
        let in_hand = self.in_hand.iter().find(|(_, hand)| **hand == of);
        let place = in_hand.map(|(place, _)| *place);
        place.and_then(|place| self.in_hand.remove(&place));
        let goes = (item.rule, item.closed.path.clone());
        match copied {
            Copied::Done => {
                self.status.done += 1;
                self.status.bytes += item.closed.status.size_bytes;
                self.last_safe = Some(now);
                self.failed.remove(&goes);
            }
            Copied::Changed => self.status.superseded += 1,
            Copied::Stopped => self.items.extend(place.map(|place| (place, item.clone()))),
            Copied::Failed(failure) => {
                self.status.failed += 1;
                self.failed.insert(goes, (item.clone(), failure.reason));
            }
        }
    }

    /// Is nothing left of what was closed before this number?
    pub(super) fn is_done_before(&self, number: u64) -> bool {
        let waits = self.items.first_key_value().map(|(place, _)| *place);
        let in_hand = self.in_hand.first_key_value().map(|(place, _)| *place);
        let first = waits.into_iter().chain(in_hand).min();
        first.is_none_or(|first| first >= number)
    }

    /// The number of what will be closed next.
    pub(super) fn number(&self) -> u64 {
        self.next
    }

    /// What is closed there is not seen while the job runs, so nobody can say that all has arrived.
    pub(super) fn unseen(&mut self, path: &Path, error: &forebay_host::Error) {
        let reason = format!("what is closed there is not seen: {error}");
        self.unseen.insert(path.to_owned(), reason);
    }

    /// How fast a rule goes.
    pub(super) fn pace(&mut self, rule: usize) -> &mut Pace {
        self.paces.entry(rule).or_default()
    }

    /// What is left to stage-out: versions that wait, and files whose last version failed.
    pub(super) fn left(&self) -> impl Iterator<Item = &Item> {
        let waits = |item: &Item| {
            let mut waiting = self.items.values();
            waiting.any(|other| (other.rule, &other.closed.path) == (item.rule, &item.closed.path))
        };
        let failed = self.failed.values().map(|(item, _)| item);
        let failed = failed.filter(move |item| !waits(item));
        self.items.values().chain(failed)
    }

    pub(super) fn status(&self) -> DrainStatus {
        let failed = self
            .failed
            .iter()
            .map(|((_, path), (_, reason))| (path, reason));
        // What the job has removed or renamed since is not to arrive any more.
        let is_there = |path: &Path| !files::status_of_name(path).is_err_and(|e| e.is_not_found());
        let failures = failed
            .chain(&self.unseen)
            .filter(|(path, _)| is_there(path));
        let failures: BTreeSet<_> = failures
            .map(|(path, reason)| (path.to_string_lossy().into_owned(), reason.clone()))
            .collect();
        DrainStatus {
            waiting: self.items.len() as u64,
            failures: failures.into_iter().collect(),
            ..self.status.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use forebay_host::clock;
    use forebay_host::files::{Kind, Status};

    fn item(rule: usize, name: &str, version: u64) -> Item {
        let time = (0, 0);
        let status = Status {
            kind: Kind::File,
            size_bytes: 10,
            mode: 0o600,
            owner: 0,
            group: 0,
            device: 1,
            inode: 1,
            links: 1,
            allocated_bytes: 4096,
            accessed: time,
            modified: time,
            changed: time,
        };
        Item {
            rule,
            closed: Closed {
                path: name.into(),
                version,
                status,
            },
        }
    }

    fn taken(queue: &mut Queue) -> Option<(String, u64)> {
        let item = queue.take()?;
        queue.put_down(&item, Copied::Done, clock::now());
        Some((
            item.closed.path.to_string_lossy().into_owned(),
            item.closed.version,
        ))
    }

    #[test]
    fn each_version_that_still_stands_is_taken_once() {
        let mut queue = Queue::default();
        for (name, version) in [("a", 1), ("b", 1), ("a", 2)] {
            queue.add(item(0, name, version));
        }
        assert_eq!(taken(&mut queue), Some(("b".to_owned(), 1)));
        assert!(!queue.is_done_before(queue.number()));
        assert_eq!(taken(&mut queue), Some(("a".to_owned(), 2)));
        assert!(queue.is_done_before(queue.number()));
        assert_eq!(taken(&mut queue), None);
        let status = queue.status();
        assert_eq!((status.enqueued, status.done, status.superseded), (3, 2, 1));
        assert_eq!((status.bytes, status.waiting), (20, 0));
    }

    #[test]
    fn of_a_newest_rule_only_the_last_closed_is_taken_and_other_rules_are_left_alone() {
        let mut queue = Queue::of(vec![true, false]);
        for (rule, name) in [(0, "c1"), (1, "log"), (0, "c2"), (0, "c3")] {
            queue.add(item(rule, name, 1));
        }
        // What will not be copied does not wait: each look at the queue would pass it.
        let status = queue.status();
        assert_eq!((status.waiting, status.skipped), (2, 2));
        let log = queue.take().expect("one");
        assert_eq!(log.closed.path, Path::new("log"));
        let first = queue.take().expect("another");
        assert_eq!(first.closed.path, Path::new("c3"));
        queue.add(item(0, "c4", 1));
        queue.add(item(0, "c4", 2));
        let status = queue.status();
        assert_eq!(
            (status.enqueued, status.skipped, status.superseded),
            (6, 2, 1)
        );
        assert!(queue.take().is_none()); // until the first is put down
        queue.put_down(&first, Copied::Changed, clock::now());
        let third = queue.take().expect("a third");
        assert_eq!(
            (third.closed.path.as_path(), third.closed.version),
            (Path::new("c4"), 2)
        );
    }

    #[test]
    fn a_version_waits_while_an_older_one_of_its_file_is_copied() {
        let mut queue = Queue::default();
        queue.add(item(0, "a", 1));
        let first = queue.take().expect("one");
        queue.add(item(0, "a", 2));
        assert!(queue.take().is_none());
        assert!(!queue.is_done_before(1));
        queue.put_down(&first, Copied::Changed, clock::now());
        assert!(queue.is_done_before(1) && !queue.is_done_before(2));
        assert_eq!(taken(&mut queue), Some(("a".to_owned(), 2)));
    }

    #[test]
    fn each_rule_has_a_rate_of_its_own() {
        let mut queue = Queue::default();
        let now = clock::now();
        let second = std::time::Duration::from_secs(1);
        assert_eq!(queue.pace(0).after(10, 10, now), now + second);
        assert_eq!(queue.pace(1).after(10, 10, now), now + second);
        assert_eq!(queue.pace(0).after(10, 10, now), now + 2 * second);
    }
}
