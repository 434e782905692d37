//! The nodes of a job, seen from `forebay run`: connections to their agents, the runner of an engine's
//! plan, and its monitor. Assumes that each node runs the same version of Forebay.

mod connection;
mod monitor;
mod nodes;
mod runner;
mod session;

pub use monitor::HANG_S_MAX;
pub use nodes::{NodeHandle, Reach, directory_of};
pub use session::{Session, SessionSpec, remount_left, remove_left};
