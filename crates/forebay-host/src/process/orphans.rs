//! Ends the processes that a job left behind. As their reaper, this process finds all of them.

use std::time::Duration;

use rustix::process::{Pid, Signal};

use super::proc_table::{children_of, processes, signals_of};
use super::send::{send, us};
use super::wait::Events;
use crate::{Result, clock};

/// What became of the processes a job had left behind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Orphans {
    /// How many there were at first.
    pub found: usize,
    /// Those that could not be ended: another user's, or stuck in the kernel.
    pub remaining: Vec<i32>,
}

impl Events {
    /// Ends every descendant that is left: SIGTERM, and SIGKILL after `grace` or when we are asked
    /// to stop. What cannot be ended within ten times `grace` is returned.
    pub fn kill_orphans(&self, grace: Duration) -> Result<Orphans> {
        if self.all_gone()? {
            return Ok(Orphans::default());
        }
        let found = self.descendants()?.len();
        let started = clock::now();
        let asked_before = self.bell.stops.count();
        self.signal_all(Signal::TERM)?;
        while !self.all_gone()? {
            let waited = started.elapsed();
            let overdue = waited >= grace || self.bell.stops.count() > asked_before;
            if overdue {
                self.signal_all(Signal::KILL)?;
            }
            if waited >= grace * 10 {
                // All of them, also one that only looks ended: the kernel says that it is not.
                let remaining = children_of(us(), &self.excluded.borrow(), &processes()?);
                return Ok(Orphans { found, remaining });
            }
            // The end of a descendant that is no child of ours makes no event: look again.
            let step = Duration::from_millis(if overdue { 10 } else { 50 });
            self.next(Some(clock::now() + step));
        }
        let remaining = Vec::new();
        Ok(Orphans { found, remaining })
    }

    /// Has every process of the job ended, threads and all? As the reaper we have no child left
    /// then: the kernel says so, where a look through /proc can miss one that is just being made.
    fn all_gone(&self) -> Result<bool> {
        let (children_left, _) = self.reap(None);
        if !children_left {
            return Ok(true);
        }
        let processes = processes()?;
        // Keepers of jobs within the job are children of ours by now, and stay.
        let others = self.others.borrow();
        let stays = |child: &i32| others.contains(child) || processes.keepers.contains(child);
        let children = processes.children.get(&us());
        if children.into_iter().flatten().any(stays) {
            return Ok(!children_of(us(), &self.excluded.borrow(), &processes)
                .iter()
                .any(|pid| processes.alive.contains(pid)));
        }
        Ok(false)
    }

    /// Sends a signal to all of the job's processes that catch it, and leaves alone those that it would
    /// kill. Returns how many they were.
    pub fn signal_catching(&self, signal: i32) -> Result<usize> {
        let mut count = 0;
        for pid in self.descendants()? {
            let caught = signals_of(&pid.as_raw_pid().to_string(), "SigCgt:");
            let catches = caught.is_ok_and(|caught| caught & (1 << (signal - 1)) != 0);
            if let Some(signal) = Signal::from_named_raw(signal).filter(|_| catches) {
                send(pid, signal)?;
                count += 1;
            }
        }
        Ok(count)
    }

    /// All living descendants of this process that a job of ours started.
    pub(super) fn descendants(&self) -> Result<Vec<Pid>> {
        let processes = processes()?;
        let alive = |pid: &i32| processes.alive.contains(pid);
        let found = children_of(us(), &self.excluded.borrow(), &processes);
        Ok(found.into_iter().filter(alive).filter_map(Pid::from_raw).collect())
    }

    pub(super) fn signal_all(&self, signal: Signal) -> Result<()> {
        for pid in self.descendants()? {
            send(pid, signal)?;
        }
        Ok(())
    }
}
