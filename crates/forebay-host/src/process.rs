//! Processes and signals.
//!
//! The process that calls [`SignalGuard::listen`] becomes the reaper of all its descendants: it finds and ends
//! what a job leaves behind, as a scheduler's process tracking does.

mod capture;
mod ended;
mod group;
mod launch;
mod orphans;
mod pre_exec;
mod proc_table;
mod reference;
mod send;
mod signal_sender;
mod signals;
mod stop_requests;
mod wait;

pub use capture::{Captured, run_captured};
pub use ended::Ended;
pub use group::{Group, GroupNumber};
pub use launch::{Job, command, leave_session, replace_by, start_in_our_group, start_job};
pub use orphans::Orphans;
pub use pre_exec::rename_before_exec;
pub(crate) use proc_table::KEEPER;
pub use proc_table::{Identity, end, in_mount_namespace, using_directory, with_env};
pub use reference::{Liveness, ProcessRef};
pub use signals::{SignalGuard, signal_number};
pub use stop_requests::{EventSender, StopRequests};
pub use wait::{EndReason, Events, WaitAction};
