//! The life of a job: validate, allocate, stage in, run, stage out, tear down.

mod environment;
mod error;
mod header;
mod launchers;
mod life;
mod outcome;
mod script;

pub use error::{Error, FAILED_BEFORE_THE_JOB, STAGE_OUT_INCOMPLETE};
pub use header::Header;
pub use launchers::{SHIMS_VARIABLE, shim_directory};
pub use life::{Direction, Order, Output, Watcher, run};
pub use outcome::{Outcome, Staged, StoreUsed};
pub use script::JobScript;
