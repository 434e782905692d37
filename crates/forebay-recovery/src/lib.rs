//! Reports the state of earlier jobs and removes their leftovers. Assumes that `clean` runs before the
//! process starts a thread, since it enters the job's view. Never stages out what the user wants to keep.

mod clean;
mod error;
mod report;
mod state;
mod unreadable;
mod unrecorded;
mod view_targets;

pub use clean::{CleanOptions, CleanSummary, clean};
pub use error::Error;
pub use report::{JobReport, JobsByNode, Undrained, report, undrained_by_node};
pub use state::{JobState, state};
pub use unreadable::forget_unreadable;
pub use unrecorded::{is_unrecorded, remove_unrecorded};
