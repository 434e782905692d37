//! The life of a job: validate, allocate, stage in, run, stage out, tear down.

mod command;
mod context;
mod drain;
mod error;
mod execution;
mod life;
mod on_close;
mod open_work;
mod order;
mod outcome;
mod preview;
mod recording;
mod series;
mod snapshot;
mod stages;
mod versions;

pub use command::{Command, Profiled};
pub use drain::{
    ControlRequest, DRAIN_VARIABLE, DrainSpec, DrainStatus, Drained, Spectral, query_drain,
};
pub use error::{
    Error, FAILED_BEFORE_THE_JOB, STAGE_OUT_INCOMPLETE, TIME_LIMIT_REACHED, TIME_RAN_OUT,
};
pub use life::{run, series};
pub use on_close::{
    Callbacks, CommandOptions, CommandSummary, FINISH, Handler, OnClose, READY, STOP,
};
pub use order::{Order, Output, Watcher};
pub use outcome::Outcome;
pub use preview::{Planned, PlannedDrain, PlannedSpectral, Preview, Shown};
pub use recording::complete_profiles;
pub use series::{Ran, Ready, Requester, Run, What};
