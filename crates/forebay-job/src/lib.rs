//! The life of a job: validate, allocate, stage in, run, stage out, tear down.
//! Assumes a process without threads at the start, since it enters the view. Never prints: a reporter
//! receives all messages.

mod command;
mod context;
mod dry_run;
mod error;
mod execution;
mod job_spec;
mod life;
mod node;
mod open_work;
mod outcome;
mod recording;
mod remote_copies;
mod series;
mod shared_nodes;
mod snapshot;
mod stages;
mod store_watch;
mod unnamed_files;
mod variables;

pub use command::{Command, Profiled};
pub use dry_run::{DryRun, PathShown, PlannedDrain, PlannedSpectral, PlannedStage};
pub use error::Error;
pub use job_spec::{JobSpec, Output, Reporter};
pub use life::{run, series};
pub use outcome::Outcome;
pub use recording::complete_profiles;
pub use remote_copies::serve_task;
pub use series::{Ran, Ready, Run, RunSource, RunTarget};
pub use shared_nodes::NodeOptions;
pub use unnamed_files::UnnamedFiles;
