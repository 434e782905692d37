//! The nodes of a job, seen from `forebay run`: connections to their agents, the runner of an engine's
//! plan, and its monitor. Assumes that each node runs the same version of Forebay.

mod connection;
mod fences;
mod leftovers;
mod losses;
mod monitor;
mod nodes;
mod requests;
mod runner;
mod session;
mod watch;

pub use leftovers::{remove_left, restore_left};
pub use monitor::{HANG_S_MAX, hang_s_max};
pub use nodes::{NodeHandle, Reach, directory_of, lost_s_max};
pub use session::{Session, SessionSpec};
pub use watch::Watch;
