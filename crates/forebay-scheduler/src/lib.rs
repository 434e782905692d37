//! Interfaces of batch schedulers: the header of a script, the variables and the end of a job.
//! Reads scripts and the environment, and runs query programs of schedulers. Never starts a job.

mod dialect;
mod end_query;
mod end_time;
mod error;
mod flux;
mod header;
mod job_facts;
mod lsf;
mod node_launcher;
mod node_list;
mod nodes;
mod pbs;
mod quantity;
mod reach;
mod scheduler_program;
mod script;
mod slurm;
mod variables;

pub use end_time::EndTime;
pub use error::Error;
pub use header::{Header, Scheduler, parse_time};
pub use node_launcher::{NodeLauncher, node_names_in, node_names_of_job};
pub use node_list::expand_node_list;
pub use nodes::nodes_of_batch_script;
pub use reach::{RemoteShell, launcher_command_on};
pub use script::JobScript;
pub use variables::{
    BASH_START_UP, JOB_ID_VARIABLE, SHIMS_VARIABLE, TASKS_VARIABLE, Variable, in_a_schedulers_job,
    job_variables, options_for_login_shell, scheduler_job_id, shim_variables, with_slash,
};
