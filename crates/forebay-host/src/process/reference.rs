//! Identifies a process of any machine, and checks whether it is alive.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::proc_table::Identity;
use crate::{Result, system};

/// A recorded process, perhaps of another machine or container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessRef {
    /// The host name of its machine.
    pub host: String,
    /// The boot ID of its machine.
    pub boot_id: String,
    /// Its PID namespace.
    pub pid_namespace: String,
    /// Its PID in that namespace, and its start time.
    pub process: Identity,
}

/// Whether a process is alive, as far as this process can know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    /// It runs.
    Alive,
    /// It has ended, or its machine has rebooted.
    Gone,
    /// It belongs to another machine or container.
    Unknown,
}

impl ProcessRef {
    /// A reference to this process.
    pub fn ours() -> Result<Self> {
        Ok(Self {
            host: system::hostname(),
            boot_id: system::boot_id()?,
            pid_namespace: system::pid_namespace()?,
            process: Identity::ours()?,
        })
    }

    /// Whether the process was recorded on this machine since its last boot.
    pub fn is_of_this_boot(&self) -> Result<bool> {
        Ok(self.boot_id == system::boot_id()?)
    }

    /// Whether the process is alive.
    pub fn liveness(&self) -> Result<Liveness> {
        Ok(match self.is_of_this_boot()? {
            // Compare boot IDs first: a host name can change, and containers have their own.
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
