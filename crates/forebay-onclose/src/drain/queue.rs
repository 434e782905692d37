//! The state that the threads of a drain share: versions that wait or are copied, and the counts.
//! Assumes that the caller holds its lock. Never copies two versions of one file at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

use forebay_host::files;
use forebay_mover::Failure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::versions::{Version, VersionQueue};

/// The progress of a drain. Each version in `enqueued` is being copied or is in one of the other
/// counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DrainStatus {
    /// Versions that were closed.
    pub enqueued: u64,
    /// Versions whose copy was started.
    pub dequeued: u64,
    /// Versions that were copied.
    pub done: u64,
    /// Versions whose copy failed.
    pub failed: u64,
    /// Versions that were rewritten or removed before their copy completed.
    pub superseded: u64,
    /// Older versions skipped because only the newest was requested.
    pub skipped: u64,
    /// Versions that wait.
    pub waiting: u64,
    /// Versions that match, but that no stage_out line of type file or directory covers. No other
    /// count includes them.
    pub not_staged: u64,
    /// Bytes of the copied versions.
    pub bytes: u64,
    /// Existing files whose last version failed, and existing files and directories that cannot be
    /// watched: path and reason.
    pub failures: Vec<(String, String)>,
}

/// The outcome of a copy.
pub(super) enum CopyOutcome {
    /// It is at its destination.
    Done,
    /// The file was changed or removed. The close of its next version queues it again.
    Changed,
    /// The copy was cancelled. Stage-out copies the file.
    Stopped,
    /// The copy failed.
    Failed(Failure),
}

/// A directory created at a destination, and its source.
pub(super) struct CreatedDirectory {
    pub(super) target: PathBuf,
    pub(super) source: PathBuf,
}

#[derive(Default)]
pub(super) struct Queue {
    versions: VersionQueue,
    status: DrainStatus,
    /// Versions whose copy failed, by rule and file, and the reason.
    failed: BTreeMap<(usize, PathBuf), (Version, String)>,
    /// Paths that cannot be watched, and the reason.
    unwatched: BTreeMap<PathBuf, String>,
    /// The first matching file without a destination.
    pub(super) first_not_staged: Option<PathBuf>,
    pub(super) made: Vec<CreatedDirectory>,
    /// When the last version was copied.
    pub(super) last_copied: Option<Instant>,
    /// The watch has reported all files closed before this ticket.
    pub(super) synced_to: u64,
    /// The job has ended: no further copy starts.
    pub(super) job_ended: bool,
    /// No thread could be started that copies.
    pub(super) cannot_copy: bool,
}

impl Queue {
    pub(super) fn new(newest_only: Vec<bool>) -> Self {
        Self { versions: VersionQueue::new(newest_only), ..Self::default() }
    }

    /// Adds a closed version. It replaces a waiting version of the same file or, if its rule is for
    /// the newest file only, of any file of the rule.
    pub(super) fn add(&mut self, version: Version) {
        self.status.enqueued += 1;
        let path = version.closed.path.clone();
        match self.versions.add(version) {
            Some(older) if older.closed.path == path => self.status.superseded += 1,
            Some(_) => self.status.skipped += 1,
            None => {}
        }
    }

    /// Counts a matching version without a destination.
    pub(super) fn count_unmatched(&mut self, path: &Path) {
        self.status.not_staged += 1;
        self.first_not_staged.get_or_insert_with(|| path.to_owned());
    }

    /// The next version to copy, if one is ready. At most one version of a file is copied at a
    /// time; of a rule for the newest file only, at most one file.
    pub(super) fn take(&mut self) -> Option<Version> {
        let taken = self.versions.take();
        self.status.dequeued += u64::from(taken.is_some());
        taken
    }

    /// Counts the outcome of a copy.
    pub(super) fn complete(&mut self, version: &Version, copied: CopyOutcome, now: Instant) {
        let file = (version.rule, version.closed.path.clone());
        if matches!(copied, CopyOutcome::Stopped) {
            return self.versions.put_back(version);
        }
        self.versions.complete(version);
        match copied {
            CopyOutcome::Done => {
                self.status.done += 1;
                self.status.bytes += version.closed.status.size_bytes;
                self.last_copied = Some(now);
                self.failed.remove(&file);
            }
            CopyOutcome::Changed => self.status.superseded += 1,
            CopyOutcome::Stopped => {}
            CopyOutcome::Failed(failure) => {
                self.status.failed += 1;
                self.failed.insert(file, (version.clone(), failure.reason));
            }
        }
    }

    /// Are all versions with a smaller number done?
    pub(super) fn is_done_before(&self, number: u64) -> bool {
        self.versions.is_done_before(number)
    }

    /// Is nothing copied any more?
    pub(super) fn has_no_copies(&self) -> bool {
        self.job_ended || self.cannot_copy
    }

    /// The number of the next version.
    pub(super) fn next_number(&self) -> u64 {
        self.versions.next_number()
    }

    /// Marks a path as unwatched: Forebay cannot see which files are closed there.
    pub(super) fn mark_unwatched(&mut self, path: &Path, error: &forebay_host::Error) {
        let reason = format!("what is closed there is not seen: {error}");
        self.unwatched.insert(path.to_owned(), reason);
    }

    /// Versions left to stage-out: those that wait, and the last failed version of each file.
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
        // Files that the job has removed or renamed need no copy.
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
        queue.complete(&item, CopyOutcome::Done, clock::now());
        Some((item.closed.path.to_string_lossy().into_owned(), item.closed.version))
    }

    #[test]
    fn each_current_version_is_taken_once() {
        let mut queue = Queue::default();
        for (name, version) in [("a", 1), ("b", 1), ("a", 2)] {
            queue.add(item(0, name, version));
        }
        assert_eq!(taken(&mut queue), Some(("b".to_owned(), 1)));
        assert!(!queue.is_done_before(queue.next_number()));
        assert_eq!(taken(&mut queue), Some(("a".to_owned(), 2)));
        assert!(queue.is_done_before(queue.next_number()));
        assert_eq!(taken(&mut queue), None);
        let status = queue.status();
        assert_eq!((status.enqueued, status.done, status.superseded), (3, 2, 1));
        assert_eq!((status.bytes, status.waiting), (20, 0));
    }

    #[test]
    fn newest_rule_takes_only_the_last_closed_file() {
        let mut queue = Queue::new(vec![true, false]);
        for (rule, name) in [(0, "c1"), (1, "log"), (0, "c2"), (0, "c3")] {
            queue.add(item(rule, name, 1));
        }
        // Replaced versions leave the queue at once, which keeps it short.
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
        assert!(queue.take().is_none()); // until the first one completes
        queue.complete(&first, CopyOutcome::Changed, clock::now());
        let third = queue.take().expect("a third");
        assert_eq!((third.closed.path.as_path(), third.closed.version), (Path::new("c4"), 2));
    }

    #[test]
    fn version_waits_while_an_older_one_of_its_file_is_copied() {
        let mut queue = Queue::default();
        queue.add(item(0, "a", 1));
        let first = queue.take().expect("one");
        queue.add(item(0, "a", 2));
        assert!(queue.take().is_none());
        assert!(!queue.is_done_before(1));
        queue.complete(&first, CopyOutcome::Changed, clock::now());
        assert!(queue.is_done_before(1) && !queue.is_done_before(2));
        assert_eq!(taken(&mut queue), Some(("a".to_owned(), 2)));
    }
}
