//! What is done with each file that its last writer closed: a copy to its destination, or a command.
//!
//! Assumes that stage-out follows: it copies what a drain did not. Never removes a file of the job.

mod drain;
mod error;
mod on_close;
mod versions;

pub use drain::{
    ControlRequest, DRAIN_VARIABLE, Drain, DrainSpec, DrainStatus, Drained, Job, Spectral, check,
    not_in_burst_buffer, query_drain,
};
pub use error::Error;
pub use on_close::{
    Callbacks, CommandOptions, CommandSummary, FINISH, Handler, OnClose, READY, STOP,
    WatcherProcess,
};
