//! Ends leftover processes of a job. This process is their reaper, so it finds all of them.
//! Never signals keepers of views, processes that serve a job's nodes, or excluded children.
//! Gives up after ten times the grace.

use std::time::Duration;

use rustix::process::{Pid, Signal};

use super::proc_table::{children_of, processes, signals_of};
use super::send::{own_pid, send};
use super::wait::Events;
use crate::{Result, clock};

/// The result for the leftover processes of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Orphans {
    /// Their number at the start.
    pub found: usize,
    /// Processes that survived: another user's, or blocked in the kernel.
    pub remaining: Vec<i32>,
}

impl Events {
    /// Sends SIGTERM to all descendants, then SIGKILL after `grace` or on a stop request. Returns
    /// the processes that survive ten times `grace`.
    pub fn kill_orphans(&self, grace: Duration) -> Result<Orphans> {
        if self.all_gone()? {
            return Ok(Orphans::default());
        }
        let found = self.descendants()?.len();
        let started = clock::now();
        let asked_before = self.sender.stops.count();
        self.signal_all(Signal::TERM)?;
        while !self.all_gone()? {
            let waited = started.elapsed();
            let overdue = waited >= grace || self.sender.stops.count() > asked_before;
            if overdue {
                self.signal_all(Signal::KILL)?;
            }
            if waited >= grace * 10 {
                // Include zombies: the kernel reports that some threads still run.
                let remaining = children_of(own_pid(), &self.excluded.borrow(), &processes()?);
                return Ok(Orphans { found, remaining });
            }
            // The end of a descendant that is not a direct child causes no event, so poll.
            let step = Duration::from_millis(if overdue { 10 } else { 50 });
            self.next(Some(clock::now() + step));
        }
        let remaining = Vec::new();
        Ok(Orphans { found, remaining })
    }

    /// Whether all processes of the job have ended, including threads. A reaper without children is
    /// proof from the kernel, while a scan of /proc can miss a new process.
    fn all_gone(&self) -> Result<bool> {
        let (children_left, _) = self.reap(None);
        if !children_left {
            return Ok(true);
        }
        let processes = processes()?;
        // Keepers of nested jobs are children of this process now, and continue.
        let others = self.others.borrow();
        let stays = |child: &i32| {
            [&*others, &processes.keepers, &processes.servers].iter().any(|set| set.contains(child))
        };
        let children = processes.children.get(&own_pid());
        if children.into_iter().flatten().any(stays) {
            return Ok(!children_of(own_pid(), &self.excluded.borrow(), &processes)
                .iter()
                .any(|pid| processes.alive.contains(pid)));
        }
        Ok(false)
    }

    /// Sends a signal to all processes of the job that catch it, so that it kills none. Returns
    /// their number.
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

    /// All living descendants of this process that belong to a job.
    pub(super) fn descendants(&self) -> Result<Vec<Pid>> {
        let processes = processes()?;
        let alive = |pid: &i32| processes.alive.contains(pid);
        let found = children_of(own_pid(), &self.excluded.borrow(), &processes);
        Ok(found.into_iter().filter(alive).filter_map(Pid::from_raw).collect())
    }

    pub(super) fn signal_all(&self, signal: Signal) -> Result<()> {
        for pid in self.descendants()? {
            send(pid, signal)?;
        }
        Ok(())
    }
}
