//! The tasks of which a daemon knows. Never starts one.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use forebay_host::process::{Counters, Killer};
use forebay_site::messages::{Counts, Outcome, Progress};

use crate::work::progress_of;

/// Tasks that run at a time; others wait.
const RUNNING_MAX: usize = 32;
/// Of them those of one user, so that a user whose tasks hang holds up nobody else.
pub(crate) const RUNNING_OF_USER_MAX: usize = 8;

/// What a task does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Start,
    StageIn,
    StageOut,
    Remove,
}

#[derive(Debug)]
pub(crate) enum State {
    Waiting,
    Running(Killer, Arc<Counters>),
    Ended(Outcome, Instant),
}

impl State {
    pub(crate) fn progress(&self) -> Progress {
        let Self::Running(_, counters) = self else {
            return Progress { is_waiting: true, ..Progress::default() };
        };
        progress_of(counters)
    }
}

#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) kind: Kind,
    pub(crate) state: State,
    /// Its calls, which may all ask for the result.
    pub(crate) attempts: VecDeque<String>,
    /// It shall end.
    pub(crate) is_cancelled: bool,
}

#[derive(Default)]
pub(crate) struct Table {
    pub(crate) tasks: HashMap<String, Task>,
    /// Running tasks of each user.
    pub(crate) running: HashMap<u32, usize>,
    /// Allocations that are being made, with the number of requests that make each.
    pub(crate) creating: HashMap<String, usize>,
    pub(crate) counts: Counts,
    pub(crate) removed: HashSet<String>,
    pub(crate) removed_in_order: VecDeque<String>,
}

impl Table {
    pub(crate) fn has_room_for(&self, user: u32) -> bool {
        let of_user = self.running.get(&user).copied().unwrap_or_default();
        of_user < RUNNING_OF_USER_MAX && self.running.values().sum::<usize>() < RUNNING_MAX
    }

    pub(crate) fn end_one_of(&mut self, user: u32) {
        if let Some(count) = self.running.get_mut(&user) {
            *count -= 1;
        }
        self.running.retain(|_, count| *count > 0);
    }

    /// Ends one request that makes an allocation.
    pub(crate) fn end_creating(&mut self, name: &str) {
        if let Some(count) = self.creating.get_mut(name) {
            *count -= 1;
        }
        self.creating.retain(|_, count| *count > 0);
    }

    /// Counts a process that ended before its task. Returns false, and counts nothing, if the task was cancelled:
    /// then this daemon killed the process.
    pub(crate) fn count_interruption(&mut self, name: &str, by_us: bool) -> bool {
        if is_cancelled(self, name) {
            return false;
        }
        *if by_us { &mut self.counts.idle } else { &mut self.counts.interruptions } += 1;
        true
    }
}

pub(crate) fn is_cancelled(table: &Table, name: &str) -> bool {
    table.tasks.get(name).is_some_and(|task| task.is_cancelled)
}

/// Counts a task that has ended.
pub(crate) fn count(counts: &mut Counts, kind: Kind, outcome: &Outcome) {
    let counted = match kind {
        Kind::Start => return,
        Kind::StageIn => &mut counts.stage_in,
        Kind::StageOut => &mut counts.stage_out,
        Kind::Remove => &mut counts.removal,
    };
    match outcome {
        Outcome::Done { files, bytes, .. } => {
            counted.done += 1;
            counted.files += files;
            counted.bytes += bytes;
        }
        _ => counted.failed += 1,
    }
}
