//! Handles each file that its last writer closed: copies it to its destination or runs a command.
//!
//! Assumes that stage-out copies what a drain did not. Never removes a file of the job.

mod drain;
mod error;
mod on_close;
mod other_nodes;
mod versions;

pub use drain::{
    ControlRequest, DRAIN_VARIABLE, Drain, DrainSpec, DrainStatus, Drained, Job, Spectral, check,
    not_in_burst_buffer, query_drain,
};
pub use error::Error;
pub use on_close::{
    CLOSED, Callbacks, CommandOptions, CommandSummary, FINISH, Handler, OnClose, READY, STOP,
    WatcherProcess,
};
pub use other_nodes::{CloseAnswer, CloseRequest, NodeTask, OtherNodes, serve_closes};
