//! The environment a job sees.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use forebay_host::machine;

use crate::{JobScript, SHIMS_VARIABLE};

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

/// What makes the stand-ins be found: first in PATH, and as functions of bash, because a login
/// shell (`#!/bin/bash -l`) and `module` set PATH anew.
pub(crate) fn launchers(directory: &Path, names: &[&str]) -> Vec<Variable> {
    let mut path = directory.as_os_str().to_owned();
    path.push(":");
    let default = || OsString::from("/usr/local/bin:/usr/bin:/bin");
    path.push(std::env::var_os("PATH").unwrap_or_else(default));
    let mut variables = vec![
        ("PATH".to_owned(), path),
        (SHIMS_VARIABLE.to_owned(), directory.into()),
    ];
    variables.extend(names.iter().map(|name| {
        let function = format!("() {{ \"${SHIMS_VARIABLE}/{name}\" \"$@\"; }}");
        (format!("BASH_FUNC_{name}%%"), function.into())
    }));
    variables
}

/// `directory` with the trailing slash that DataWarp gives: scripts append names to it.
pub(crate) fn with_slash(directory: &Path) -> OsString {
    let mut text = directory.as_os_str().to_owned();
    text.push(OsStr::new("/"));
    text
}
