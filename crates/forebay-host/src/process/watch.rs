//! Decides whether a program of another user has reached its limit. Never kills it: the caller does.
//! Assumes the scheduler statistics of /proc: without them no program counts as idle.

use std::path::Path;
use std::time::{Duration, Instant};

use super::proc_table::is_stopped;
use crate::{clock, files};

/// When a program of another user is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeLimit {
    /// After this time.
    Whole(Duration),
    /// After it did not work for long.
    Work {
        /// How long it may use no processor: a file system may hang.
        idle_max: Duration,
        /// How long its user may have stopped it, all stops together.
        stopped_max: Duration,
    },
}

/// The limit at which a program was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overdue {
    /// It ran for too long.
    Late(Duration),
    /// It used no processor for too long.
    Idle(Duration),
    /// It was stopped for too long.
    Stopped(Duration),
}

pub(super) struct Watch {
    process: u32,
    limit: TimeLimit,
    used: Option<u64>,
    deadline: Instant,
    looked: Instant,
    stopped: Duration,
    overdue: Option<Overdue>,
}

impl Watch {
    pub(super) fn of(process: u32, limit: TimeLimit) -> Self {
        let (TimeLimit::Whole(time_max) | TimeLimit::Work { idle_max: time_max, .. }) = limit;
        let (used, now) = (processor_time(process), clock::now());
        let (looked, deadline) = (now, now + time_max);
        Self { process, limit, used, deadline, looked, stopped: Duration::ZERO, overdue: None }
    }

    /// Whether the program is to be killed. True once.
    pub(super) fn check_overdue(&mut self) -> bool {
        if self.overdue.is_some() {
            return false;
        }
        let now = clock::now();
        let passed = now.saturating_duration_since(std::mem::replace(&mut self.looked, now));
        self.overdue = match self.limit {
            TimeLimit::Whole(time_max) => (now >= self.deadline).then_some(Overdue::Late(time_max)),
            TimeLimit::Work { idle_max, stopped_max } if is_stopped(self.process) => {
                self.deadline = now + idle_max;
                self.stopped += passed;
                (self.stopped >= stopped_max).then_some(Overdue::Stopped(stopped_max))
            }
            TimeLimit::Work { idle_max, .. } => {
                let used = processor_time(self.process);
                // Where the kernel does not say it, no program is idle.
                if used.is_none() || used != self.used {
                    (self.used, self.deadline) = (used, now + idle_max);
                }
                (now >= self.deadline).then_some(Overdue::Idle(idle_max))
            }
        };
        self.overdue.is_some()
    }

    /// The limit that it reached.
    pub(super) fn overdue(&self) -> Option<Overdue> {
        self.overdue
    }

    /// When to look again.
    pub(super) fn next(&self) -> Option<Instant> {
        let soon = match self.limit {
            TimeLimit::Whole(_) => self.deadline,
            TimeLimit::Work { idle_max, stopped_max } => {
                self.deadline.min(clock::now() + idle_max.min(stopped_max) / 4)
            }
        };
        self.overdue.is_none().then_some(soon)
    }
}

/// The processor time of all threads of a process, in a unit of the kernel; none if it cannot be read.
fn processor_time(process: u32) -> Option<u64> {
    let threads = files::names_in(Path::new(&format!("/proc/{process}/task"))).ok()?;
    let of_thread = |name: &std::ffi::OsString| {
        let path = Path::new("/proc").join(process.to_string()).join("task").join(name);
        // The first number of sched-stats: nanoseconds on a processor.
        let text = files::read_to_string(&path.join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    };
    threads.iter().map(of_thread).sum()
}
