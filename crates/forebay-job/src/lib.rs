//! The life of a job: validate, allocate, stage in, run, stage out, tear down.

mod command;
mod context;
mod error;
mod execution;
mod life;
mod node;
mod open_work;
mod order;
mod outcome;
mod preview;
mod recording;
mod series;
mod snapshot;
mod stages;

pub use command::{Command, Profiled};
pub use error::{
    Error, FAILED_BEFORE_THE_JOB, STAGE_OUT_INCOMPLETE, TIME_LIMIT_REACHED, TIME_RAN_OUT,
};
pub use life::{run, series};
pub use order::{Order, Output, Watcher};
pub use outcome::Outcome;
pub use preview::{Planned, PlannedDrain, PlannedSpectral, Preview, Shown};
pub use recording::complete_profiles;
pub use series::{Ran, Ready, Requester, Run, What};
