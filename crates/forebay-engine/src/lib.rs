//! Creates the allocation of a job and the view of the file system in which the job sees it.
//! Records each step in a ledger before taking it. Never starts a thread, and never copies data.

mod driver;
mod error;
mod options;
mod path_map;
mod place;
mod provision;
mod runner;

pub use driver::{Driver, JobFacts, MOUNTED_BELOW, NodeFacts, Plan, PlannedAllocation};
pub use error::Error;
pub use options::{AllocationProgress, StoreOptions, StoreUsed};
pub use path_map::PathMap;
pub use place::{JobAllocation, Ledger, Place, Step};
pub use provision::{Provisioned, Provisioner};
