//! Starts, watches and ends processes, and handles signals. The process that calls
//! [`SignalGuard::listen`] becomes the reaper of its descendants. Like a scheduler's process
//! tracking, it finds and ends leftover processes of a job.

mod as_user;
mod capture;
mod cgroup;
mod command_line;
mod counters;
mod ended;
mod group;
mod launch;
mod orphans;
mod piped;
mod pre_exec;
mod proc_table;
mod reference;
mod send;
mod signal_sender;
mod signals;
mod stop_requests;
mod transferred;
mod wait;
mod watch;

pub(crate) use as_user::name_thread;
pub use as_user::{
    Credentials, Killer, Rights, Service, UserProcess, UserResult, become_user, close_to_debuggers,
    sealed_input, set_name, start_as_user, start_service_as_user,
};
pub use capture::{Captured, run_captured};
pub(crate) use cgroup::CGROUP_PROCESSES;
pub use cgroup::{Cgroup, Cgroups, KeptCgroup};
pub(crate) use command_line::CommandLine;
pub use counters::{COUNTERS, CounterWriter, Counters};
pub use ended::ExitStatus;
pub use group::{Group, ProcessGroupId};
pub use launch::{
    Job, command, exit_at_once, leave_session, replace_by, start_in_our_group, start_job,
};
pub use orphans::Orphans;
pub use piped::Piped;
pub use pre_exec::rename_before_exec;
pub(crate) use proc_table::KEEPER;
pub use proc_table::{
    Identity, SERVES_JOB_VARIABLE, in_mount_namespace, interrupt, is_renaming, memory_bytes,
    of_user, some_are_hidden, started_with, terminate, using_directory, with_env, with_env_where,
};
pub use reference::{Liveness, ProcessRef};
pub use signals::{SignalGuard, postpone_scheduler_signals, signal_number};
pub use stop_requests::{EventSender, StopRequests};
pub use transferred::Transferred;
pub use wait::{EndReason, Events, WaitAction};
pub use watch::{Overdue, TimeLimit};
