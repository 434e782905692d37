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

/// The user's own start-up file of bash, while `BASH_ENV` names ours.
const BASH_ENV_OF_USER: &str = "FOREBAY_BASH_ENV";

/// Start-up file of bash scripts: a login shell (`#!/bin/bash -l`) has set PATH anew before it is
/// read, so it puts the stand-ins in front again.
pub(crate) const BASH_START_UP: &str = r#"if [ -n "${FOREBAY_BASH_ENV-}" ] && [ -r "$FOREBAY_BASH_ENV" ]; then . "$FOREBAY_BASH_ENV"; fi
case ":$PATH" in ":${FOREBAY_SHIMS-}":*) ;; *) PATH=${FOREBAY_SHIMS:+$FOREBAY_SHIMS:}$PATH ;; esac
"#;

/// What makes the stand-ins be found: first in PATH, and put there again where bash starts.
pub(crate) fn launchers(directory: &Path, bash_start_up: &Path) -> Vec<Variable> {
    let mut path = directory.as_os_str().to_owned();
    path.push(":");
    let default = || OsString::from("/usr/local/bin:/usr/bin:/bin");
    path.push(std::env::var_os("PATH").unwrap_or_else(default));
    let mut variables = vec![
        ("PATH".to_owned(), path),
        (SHIMS_VARIABLE.to_owned(), directory.into()),
        ("BASH_ENV".to_owned(), bash_start_up.into()),
    ];
    // Within an outer job BASH_ENV is the outer job's, and the user's own is kept already.
    let within_a_job = std::env::var_os(SHIMS_VARIABLE).is_some();
    if let Some(own) = std::env::var_os("BASH_ENV").filter(|_| !within_a_job) {
        variables.push((BASH_ENV_OF_USER.to_owned(), own));
    }
    variables
}

/// `directory` with the trailing slash that DataWarp gives: scripts append names to it.
pub(crate) fn with_slash(directory: &Path) -> OsString {
    let mut text = directory.as_os_str().to_owned();
    text.push(OsStr::new("/"));
    text
}
