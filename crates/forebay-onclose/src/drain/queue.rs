//! What is closed and not copied yet, what is copied, and the counts: what the threads of a drain share.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use forebay_host::files;
use forebay_mover::Failure;
use serde::{Deserialize, Serialize};

use crate::versions::{Version, VersionQueue};

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
    /// Versions that were rewritten or removed before they had arrived.
    pub superseded: u64,
    /// Older ones that were left out because only the newest was asked for.
    pub skipped: u64,
    /// Versions that wait.
    pub waiting: u64,
    /// Versions that match, but that no stage_out line of type file or directory covers; counted in none of the
    /// others.
    pub not_staged: u64,
    /// Bytes of the versions that arrived.
    pub bytes: u64,
    /// Files whose last version did not arrive, and files and directories that cannot be watched, as far as they are
    /// there still: path and reason.
    pub failures: Vec<(String, String)>,
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

/// A directory that was made at a destination, and its source.
pub(super) struct Made {
    pub(super) target: PathBuf,
    pub(super) source: PathBuf,
}

#[derive(Default)]
pub(super) struct Queue {
    versions: VersionQueue,
    status: DrainStatus,
    /// What did not arrive, by rule and file, and why.
    failed: BTreeMap<(usize, PathBuf), (Version, String)>,
    /// What cannot be watched, and why.
    unwatched: BTreeMap<PathBuf, String>,
    /// The first that matched and goes nowhere.
    pub(super) first_not_staged: Option<PathBuf>,
    pub(super) made: Vec<Made>,
    /// When the last version had arrived.
    pub(super) last_copied: Option<Instant>,
    /// The watch has told all that was closed before this ticket.
    pub(super) synced_to: u64,
    /// The job has ended: nothing more is begun.
    pub(super) job_ended: bool,
}

impl Queue {
    pub(super) fn new(newest_only: Vec<bool>) -> Self {
        Self { versions: VersionQueue::new(newest_only), ..Self::default() }
    }

    /// Adds a closed version. It replaces a waiting one of the same file, and of a rule that wants the newest only
    /// one of another file.
    pub(super) fn add(&mut self, version: Version) {
        self.status.enqueued += 1;
        let path = version.closed.path.clone();
        match self.versions.add(version) {
            Some(older) if older.closed.path == path => self.status.superseded += 1,
            Some(_) => self.status.skipped += 1,
            None => {}
        }
    }

    /// Counts a version that matches, and that goes nowhere.
    pub(super) fn count_unmatched(&mut self, path: &Path) {
        self.status.not_staged += 1;
        self.first_not_staged.get_or_insert_with(|| path.to_owned());
    }

    /// The next version to be copied; none as long as there is none. Of one file one version is copied at a
    /// time, and of a rule that wants the newest only one file.
    pub(super) fn take(&mut self) -> Option<Version> {
        let taken = self.versions.take();
        self.status.dequeued += u64::from(taken.is_some());
        taken
    }

    /// Counts what became of a version that was taken.
    pub(super) fn complete(&mut self, version: &Version, copied: Copied, now: Instant) {
        let file = (version.rule, version.closed.path.clone());
        if matches!(copied, Copied::Stopped) {
            return self.versions.put_back(version);
        }
        self.versions.complete(version);
        match copied {
            Copied::Done => {
                self.status.done += 1;
                self.status.bytes += version.closed.status.size_bytes;
                self.last_copied = Some(now);
                self.failed.remove(&file);
            }
            Copied::Changed => self.status.superseded += 1,
            Copied::Stopped => {}
            Copied::Failed(failure) => {
                self.status.failed += 1;
                self.failed.insert(file, (version.clone(), failure.reason));
            }
        }
    }

    /// Is nothing left of what was closed before this number?
    pub(super) fn is_done_before(&self, number: u64) -> bool {
        self.versions.is_done_before(number)
    }

    /// The number of what will be closed next.
    pub(super) fn number(&self) -> u64 {
        self.versions.number()
    }

    /// What is closed there is not seen while the job runs, so nobody can say that all has arrived.
    pub(super) fn mark_unwatched(&mut self, path: &Path, error: &forebay_host::Error) {
        let reason = format!("what is closed there is not seen: {error}");
        self.unwatched.insert(path.to_owned(), reason);
    }

    /// Versions left to stage-out: those that wait, and files whose last version failed.
    pub(super) fn remaining(&self) -> impl Iterator<Item = &Version> {
        let waits = |version: &Version| {
            let mut waiting = self.versions.waiting();
            waiting.any(|other| {
                (other.rule, &other.closed.path) == (version.rule, &version.closed.path)
            })
        };
        let failed = self.failed.values().map(|(version, _)| version);
        let failed = failed.filter(move |version| !waits(version));
        self.versions.waiting().chain(failed)
    }

    pub(super) fn status(&self) -> DrainStatus {
        let failed = self.failed.iter().map(|((_, path), (_, reason))| (path, reason));
        // What the job has removed or renamed since is not to arrive any more.
        let is_there = |path: &Path| !files::status_of_name(path).is_err_and(|e| e.is_not_found());
        let failures = failed.chain(&self.unwatched).filter(|(path, _)| is_there(path));
        let failures: BTreeSet<_> = failures
            .map(|(path, reason)| (path.to_string_lossy().into_owned(), reason.clone()))
            .collect();
        DrainStatus {
            waiting: self.versions.waiting().len() as u64,
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
    use forebay_host::close_watch::Closed;
    use forebay_host::files::{Kind, Status};

    fn item(rule: usize, name: &str, version: u64) -> Version {
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
        Version { rule, closed: Closed { path: name.into(), version, status } }
    }

    fn taken(queue: &mut Queue) -> Option<(String, u64)> {
        let item = queue.take()?;
        queue.complete(&item, Copied::Done, clock::now());
        Some((item.closed.path.to_string_lossy().into_owned(), item.closed.version))
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
        let mut queue = Queue::new(vec![true, false]);
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
        assert_eq!((status.enqueued, status.skipped, status.superseded), (6, 2, 1));
        assert!(queue.take().is_none()); // until the first is put down
        queue.complete(&first, Copied::Changed, clock::now());
        let third = queue.take().expect("a third");
        assert_eq!((third.closed.path.as_path(), third.closed.version), (Path::new("c4"), 2));
    }

    #[test]
    fn a_version_waits_while_an_older_one_of_its_file_is_copied() {
        let mut queue = Queue::default();
        queue.add(item(0, "a", 1));
        let first = queue.take().expect("one");
        queue.add(item(0, "a", 2));
        assert!(queue.take().is_none());
        assert!(!queue.is_done_before(1));
        queue.complete(&first, Copied::Changed, clock::now());
        assert!(queue.is_done_before(1) && !queue.is_done_before(2));
        assert_eq!(taken(&mut queue), Some(("a".to_owned(), 2)));
    }
}
