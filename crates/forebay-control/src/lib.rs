//! The life of a job: validate, allocate, stage in, run, stage out, tear down.

mod environment;
mod error;
mod header;
mod job_directory;
mod life;
mod outcome;
mod script;

pub use error::{Error, FAILED_BEFORE_THE_JOB, STAGE_OUT_INCOMPLETE};
pub use forebay_store::DEFAULT_STORE;
pub use header::Header;
pub use job_directory::SHIMS_VARIABLE;
pub use life::{Direction, Order, Output, Watcher, run};
pub use outcome::{Outcome, Staged, StoreUsed};
pub use script::JobScript;
