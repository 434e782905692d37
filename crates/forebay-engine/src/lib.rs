//! Where a job's allocation goes, and the view of the file system in which the job sees it.
//! Tells a ledger of each step before it is taken. Never starts a thread, and never copies data.

mod error;
mod options;
mod path_map;
mod place;
mod provision;

pub use error::Error;
pub use options::{AllocationProgress, Chosen, StoreOptions, StoreUsed};
pub use path_map::PathMap;
pub use place::{Ledger, Place, Space, Step};
pub use provision::{MOUNTED_BELOW, Provisioned, Provisioner};
