//! The environment a job sees.

use std::ffi::OsString;
use std::path::Path;

use forebay_host::machine;

use crate::JobScript;

/// Name and value.
pub(crate) type Variable = (String, OsString);

/// What Slurm would set in a batch job's environment (sbatch(1), OUTPUT ENVIRONMENT VARIABLES),
/// true for the one node that there is.
pub(crate) fn slurm(script: &JobScript, id: &str, submitted_in: &Path) -> Vec<Variable> {
    let header = &script.header;
    let tasks = header.task_count().to_string();
    let processors = machine::processors().to_string();
    let host = machine::hostname();
    let mut variables: Vec<Variable> = Vec::new();
    let mut set = |names: &[&str], value: OsString| {
        variables.extend(names.iter().map(|name| ((*name).to_owned(), value.clone())));
    };
    set(&["SLURM_JOB_ID", "SLURM_JOBID"], id.into());
    set(&["SLURM_JOB_NAME"], script.job_name().into());
    set(&["SLURM_SUBMIT_DIR"], submitted_in.into());
    set(&["SLURM_NTASKS", "SLURM_NPROCS"], tasks.clone().into());
    set(
        &["SLURM_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE"],
        tasks.into(),
    );
    set(&["SLURM_JOB_NUM_NODES", "SLURM_NNODES"], "1".into());
    set(
        &["SLURM_NODEID", "SLURM_PROCID", "SLURM_LOCALID"],
        "0".into(),
    );
    set(
        &["SLURM_JOB_CPUS_PER_NODE", "SLURM_CPUS_ON_NODE"],
        processors.into(),
    );
    let names = [
        "SLURM_JOB_NODELIST",
        "SLURM_NODELIST",
        "SLURM_SUBMIT_HOST",
        "SLURMD_NODENAME",
    ];
    set(&names, host.into());
    let optional = [
        (
            "SLURM_CPUS_PER_TASK",
            header.cpus_per_task.map(|n| n.to_string()),
        ),
        ("SLURM_JOB_PARTITION", header.partition.clone()),
        ("SLURM_JOB_ACCOUNT", header.account.clone()),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            set(&[name], value.into());
        }
    }
    variables
}

/// `directory` with the trailing slash that DataWarp gives: scripts append names to it.
pub(crate) fn with_slash(directory: &Path) -> OsString {
    let mut text = directory.as_os_str().to_owned();
    text.push("/");
    text
}

/// PATH with one more directory in front.
pub(crate) fn path_behind(first: &Path) -> OsString {
    let mut path = first.as_os_str().to_owned();
    if let Some(rest) = std::env::var_os("PATH") {
        path.push(":");
        path.push(rest);
    }
    path
}
