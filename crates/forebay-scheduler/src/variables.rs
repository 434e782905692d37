//! The variables that a job sees: its scheduler's, and those by which it finds the shims.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use forebay_host::system;

use crate::header::Scheduler;
use crate::script::JobScript;

use crate::job_facts::{Facts, Names};
use crate::{lsf, pbs, slurm};

/// Names the directory of the shims, for what is started by the job.
pub const SHIMS_VARIABLE: &str = "FOREBAY_SHIMS";

/// Number of tasks the job asks for, whatever scheduler its script was written for.
pub const TASKS_VARIABLE: &str = "FOREBAY_NTASKS";
/// The job's id, likewise.
pub const JOB_ID_VARIABLE: &str = "FOREBAY_JOB_ID";

/// Name and value.
pub type Variable = (String, OsString);
/// Set by the schedulers themselves in a job of theirs. Flux names no job in the environment of a
/// script, only itself (flux-environment(7)).
const JOB_ID_VARIABLES: [&str; 4] = ["SLURM_JOB_ID", "LSB_JOBID", "PBS_JOBID", "FLUX_JOB_ID"];
const OF_FLUX_ITSELF: &str = "FLUX_URI";

/// The id of the scheduler's job that we are part of, if we are; `unnamed` if it has none.
pub fn scheduler_job_id(unnamed: &str) -> Option<String> {
    if std::env::var_os(SHIMS_VARIABLE).is_some() {
        return None; // that is a job of ours, dressed up as a scheduler's
    }
    let named = JOB_ID_VARIABLES.iter().find_map(|name| std::env::var(name).ok());
    named.or_else(|| std::env::var_os(OF_FLUX_ITSELF).map(|_| unnamed.to_owned()))
}

/// Are we part of a scheduler's job?
pub fn in_a_schedulers_job() -> bool {
    scheduler_job_id("").is_some()
}

/// What the scheduler that the script is written for would set; Slurm's where it names none.
/// `write_node_file` is called where there is one: it writes these lines and says where.
///
/// # Errors
/// Those of `write_node_file`.
pub fn job_variables(
    script: &JobScript,
    id: &str,
    submitted_in: &Path,
    write_node_file: impl FnOnce(&str) -> forebay_host::Result<PathBuf>,
) -> forebay_host::Result<Vec<Variable>> {
    let header = &script.header;
    let tasks = header.task_count();
    let scheduler = header.scheduler.unwrap_or(Scheduler::Slurm);
    let host = system::hostname();
    let node_file = match scheduler {
        Scheduler::Lsf | Scheduler::Pbs => {
            let lines = format!("{host}\n").repeat(tasks as usize);
            write_node_file(&lines)?.into_os_string()
        }
        Scheduler::Slurm | Scheduler::Flux => OsString::new(),
    };
    let facts = Facts {
        id: id.as_ref(),
        name: script.job_name(),
        tasks: tasks.to_string(),
        processors: system::processors().to_string(),
        host,
        submitted_in: submitted_in.as_os_str(),
        cpus_per_task: header.cpus_per_task.map(|n| n.to_string()),
        partition: header.partition.as_deref(),
        account: header.account.as_deref(),
        node_file,
    };
    let mut variables = Vec::new();
    let mut set = |(names, value): Names| {
        variables.extend(names.iter().map(|name| ((*name).to_owned(), value.to_owned())));
    };
    set((&[TASKS_VARIABLE], facts.tasks.as_ref()));
    set((&[JOB_ID_VARIABLE], facts.id));
    match scheduler {
        Scheduler::Slurm => slurm::variables(&facts, &mut set),
        Scheduler::Lsf => lsf::variables(&facts, &mut set),
        Scheduler::Pbs => pbs::variables(&facts, &mut set),
        // Flux gives its variables to the tasks of `flux run`, not to the script
        // (flux-environment(7)); an MPI program in the script would seek Flux where it finds them.
        Scheduler::Flux => {}
    }
    Ok(variables)
}

/// The user's own start-up file of bash, while `BASH_ENV` names ours.
const BASH_ENV_OF_USER: &str = "FOREBAY_BASH_ENV";

/// Start-up file of bash scripts: a login shell (`#!/bin/bash -l`) has set PATH again before it is
/// read, so it puts the shims in front again.
pub const BASH_START_UP: &str = r#"if [ -n "${FOREBAY_BASH_ENV-}" ] && [ -r "$FOREBAY_BASH_ENV" ]; then . "$FOREBAY_BASH_ENV"; fi
case ":$PATH" in ":${FOREBAY_SHIMS-}":*) ;; *) PATH=${FOREBAY_SHIMS:+$FOREBAY_SHIMS:}$PATH ;; esac
"#;

/// What makes the shims be found: first in PATH, and put there again where bash starts.
pub fn shim_variables(directory: &Path, bash_start_up: &Path) -> Vec<Variable> {
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
pub fn with_slash(directory: &Path) -> OsString {
    let mut text = directory.as_os_str().to_owned();
    text.push(OsStr::new("/"));
    text
}
