//! Versions whose commands wait or run, and the counts.
//! Assumes that the caller holds the lock of the handler. Never starts or ends a command.

use forebay_host::process::ProcessGroupId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::versions::{Version, VersionQueue};

/// Counts of the commands. Each version in `closed` is also in one of the other counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandSummary {
    /// Closed versions that match a pattern.
    pub closed: u64,
    /// Commands that succeeded.
    pub done: u64,
    /// Commands that failed, after all retries.
    pub failed: u64,
    /// Versions that were rewritten or removed before their command started.
    pub superseded: u64,
    /// Versions whose command was not started because of a stop request.
    pub not_run: u64,
    /// Path, version and reason of each failure.
    pub failures: Vec<(String, u64, String)>,
    /// Patterns that no closed file matched.
    #[serde(default)]
    pub unmatched: Vec<String>,
}

#[derive(Default)]
pub(super) struct Queue {
    /// Commands of one rule for one file never run at the same time.
    versions: VersionQueue,
    summary: CommandSummary,
    pub(super) running: Vec<ProcessGroupId>,
    pub(super) synced_to: u64,
    pub(super) watch_ended: bool,
    /// No further command is started.
    pub(super) stopped: bool,
}

impl Queue {
    /// Adds a closed version. It replaces a waiting version of the same file.
    pub(super) fn add(&mut self, version: Version) {
        self.summary.closed += 1;
        self.summary.superseded += u64::from(self.versions.add(version).is_some());
    }

    pub(super) fn take(&mut self) -> Option<Version> {
        self.versions.take()
    }

    /// Counts the outcome of a command; none if the file was removed.
    pub(super) fn complete(&mut self, version: &Version, outcome: Option<Result<(), String>>) {
        self.versions.complete(version);
        match outcome {
            None => self.summary.superseded += 1,
            Some(Ok(())) => self.summary.done += 1,
            Some(Err(reason)) => {
                self.summary.failed += 1;
                self.summary.failures.push(failure(version, reason));
            }
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.versions.is_idle()
    }

    pub(super) fn closed(&self) -> u64 {
        self.summary.closed
    }

    /// The summary. Commands that still wait count as not run.
    pub(super) fn summary(&self) -> CommandSummary {
        let waiting = self.versions.waiting();
        let mut summary = self.summary.clone();
        summary.not_run = waiting.len() as u64;
        let not_begun = "it was not begun: we were to stop";
        summary.failures.extend(waiting.map(|version| failure(version, not_begun.to_owned())));
        summary
    }
}

fn failure(version: &Version, reason: String) -> (String, u64, String) {
    let path = version.closed.path.to_string_lossy().into_owned();
    (path, version.closed.version, reason)
}
