//! Where an allocation is, and the ledger that learns it before it is made.

use std::path::PathBuf;

use forebay_directive::{AccessMode, Request};
use forebay_host::process::Identity;
use forebay_store::Allocation;
use serde::{Deserialize, Serialize};

use crate::options::StoreUsed;

/// What is about to exist, or no longer exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The allocation is created in this place next.
    Allocation(Place),
    /// This process holds the job's view; it goes on once the step is recorded.
    Keeper(Identity),
    /// The process that held the view was ended.
    KeeperEnded,
}

/// Records the steps of a job, so that whatever becomes of this process, another one can undo them.
pub trait Ledger {
    /// Records a step; it is on disk when this returns.
    ///
    /// # Errors
    /// If it cannot be written; the step is not taken then.
    fn about_to(&mut self, step: Step) -> forebay_host::Result<()>;
}

/// The place of the allocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Its own directory.
    pub root: PathBuf,
    /// A memory file system of its own, which the keeper holds.
    pub mounted: bool,
    /// Bytes given.
    pub capacity_bytes: u64,
}

/// The job's allocation and what is known of it.
#[derive(Debug)]
pub struct JobAllocation {
    /// Where it is.
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
