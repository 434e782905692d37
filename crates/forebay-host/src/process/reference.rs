//! A process of any machine, and whether it is alive.

use serde::{Deserialize, Serialize};

use super::proc_table::Identity;
use crate::{Result, system};

/// A process that was recorded, perhaps by another machine or another container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessRef {
    /// The machine it runs on.
    pub host: String,
    /// Which start of that machine.
    pub boot_id: String,
    /// The namespace in which its number counts.
    pub pid_namespace: String,
    /// Its number there, and when it was started.
    pub process: Identity,
}

/// Whether a process is alive, as far as this process can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    /// It runs.
    Alive,
    /// It has ended, or its machine was started again.
    Gone,
    /// It belongs to another machine or container, which alone can tell.
    Unknown,
}

impl ProcessRef {
    /// This process.
    pub fn ours() -> Result<Self> {
        Ok(Self {
            host: system::hostname(),
            boot_id: system::boot_id()?,
            pid_namespace: system::pid_namespace()?,
            process: Identity::ours()?,
        })
    }

    /// Was the machine not started again since, if it is this one?
    pub fn is_of_this_boot(&self) -> Result<bool> {
        Ok(self.boot_id == system::boot_id()?)
    }

    /// Is it alive?
    pub fn liveness(&self) -> Result<Liveness> {
        Ok(match self.is_of_this_boot()? {
            // A machine may get another name, and a container has one of its own.
            true if self.pid_namespace != system::pid_namespace()? => Liveness::Unknown,
            true if self.process.is_alive() => Liveness::Alive,
            false if self.host != system::hostname() => Liveness::Unknown,
            _ => Liveness::Gone,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn liveness_is_judged_on_the_own_machine_only() {
        let ours = ProcessRef::ours().expect("ours");
        let of = |process: ProcessRef| process.liveness().expect("liveness");
        assert_eq!(of(ours.clone()), Liveness::Alive);
        let mut later = ours.clone();
        later.process.started_ticks += 1;
        assert_eq!(of(later), Liveness::Gone);
        let renamed = ProcessRef { host: "another-name".into(), ..ours.clone() };
        assert_eq!(of(renamed.clone()), Liveness::Alive);
        let in_container = ProcessRef { pid_namespace: "pid:[1]".into(), ..ours.clone() };
        assert_eq!(of(in_container), Liveness::Unknown);
        let earlier_boot = ProcessRef { boot_id: "earlier".into(), ..ours };
        assert_eq!(of(earlier_boot.clone()), Liveness::Gone);
        let elsewhere = ProcessRef { boot_id: "other".into(), ..renamed };
        assert_eq!(of(elsewhere), Liveness::Unknown);
    }
}
