//! The nodes of a job: the agent on each, and on the first one the connections to them, the runner of an engine's plan
//! and its monitor. Assumes that each node runs the same version of Forebay. Never decides what an engine starts.

pub mod agent;
mod connection;
mod error;
mod fences;
mod leftovers;
mod losses;
mod monitor;
mod nodes;
mod recovery;
mod requests;
mod runner;
mod session;
mod watch;

pub use error::Error;
pub use leftovers::{remove_left, restore_left};
pub use monitor::hang_s_max;
pub use nodes::{AgentSpec, NodeHandle, directory_of, lost_s_max};
pub use session::{Session, SessionSpec};
pub use watch::Watch;
