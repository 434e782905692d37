//! The place of an allocation, and the ledger that records it before the allocation is created.

use std::path::PathBuf;

use forebay_directive::{AccessMode, Request};
use forebay_host::process::Identity;
use forebay_store::Allocation;
use serde::{Deserialize, Serialize};

use crate::nodes_use::NodesUse;
use crate::options::StoreUsed;

/// A change to record before or after it happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The allocation is created in this place next.
    Allocation(AllocationDirectory),
    /// This process holds the job's view; it continues once the step is recorded.
    Keeper(Identity),
    /// The process that held the view has ended.
    KeeperEnded,
    /// An engine is started on these nodes next.
    Nodes(NodesUse),
}

/// Records the steps of a job, so that another process can undo them if this one is killed.
pub trait Ledger {
    /// Records a step. It is on disk when this returns.
    ///
    /// # Errors
    /// If it cannot be written; then the step is not taken.
    fn record_step(&mut self, step: Step) -> forebay_host::Result<()>;
}

/// The place of an allocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocationDirectory {
    /// The directory of the allocation.
    pub root: PathBuf,
    /// Whether it is a separate memory file system, which the keeper holds.
    pub mounted: bool,
    /// Capacity in bytes.
    pub capacity_bytes: u64,
}

/// The allocation of a job.
#[derive(Debug)]
pub struct JobAllocation {
    /// The allocation itself.
    pub allocation: Allocation,
    /// Its store and size.
    pub used: StoreUsed,
}

impl JobAllocation {
    /// Directories of all namespaces.
    pub fn roots(&self, request: &Request) -> Vec<PathBuf> {
        let modes = request.job.iter().flat_map(|job| &job.access);
        let root = |mode: &AccessMode| self.allocation.namespace(mode.directory());
        modes.map(root).collect()
    }
}
