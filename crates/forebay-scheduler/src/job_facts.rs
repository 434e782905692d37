//! Values for the variables of a job on one node.

use std::ffi::{OsStr, OsString};

/// Names of variables with the same value, and the value.
pub(crate) type Names<'a> = (&'static [&'static str], &'a OsStr);

/// Values for the variables of a job.
pub(crate) struct Facts<'a> {
    pub(crate) id: &'a OsStr,
    pub(crate) name: String,
    pub(crate) tasks: String,
    /// The same, unless the script leaves the number to Slurm's srun.
    pub(crate) requested_tasks: Option<String>,
    pub(crate) processors: String,
    pub(crate) host: String,
    pub(crate) submit_directory: &'a OsStr,
    pub(crate) cpus_per_task: Option<String>,
    pub(crate) partition: Option<&'a str>,
    pub(crate) account: Option<&'a str>,
    /// A file with one line for each task: the name of its node.
    pub(crate) node_file: OsString,
}
