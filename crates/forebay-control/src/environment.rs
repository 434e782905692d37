//! The environment a job sees.

mod lsf;
mod pbs;
mod slurm;

use std::ffi::{OsStr, OsString};
use std::path::Path;

use forebay_host::machine;

use crate::header::Scheduler;
use crate::record::JobDirectory;
use crate::{JobScript, SHIMS_VARIABLE};

/// Number of tasks the job asks for, whatever scheduler its script was written for.
pub const TASKS_VARIABLE: &str = "FOREBAY_NTASKS";
/// The job's id, likewise.
pub const JOB_ID_VARIABLE: &str = "FOREBAY_JOB_ID";

/// Name and value.
pub(crate) type Variable = (String, OsString);
/// Names, and the value of each of them.
type Names<'a> = (&'static [&'static str], &'a OsStr);

/// What variables are made from; true for the one node that there is.
struct Facts<'a> {
    id: &'a OsStr,
    name: String,
    tasks: String,
    processors: String,
    host: String,
    submitted_in: &'a OsStr,
    cpus_per_task: Option<String>,
    partition: Option<&'a str>,
    account: Option<&'a str>,
    /// A file with a line for each task: the name of its node.
    node_file: OsString,
}

/// Set by the schedulers themselves in a job of theirs. Flux names no job in the environment of a
/// script, only itself (flux-environment(7)).
const OF_A_REAL_SCHEDULER: [&str; 4] = ["SLURM_JOB_ID", "LSB_JOBID", "PBS_JOBID", "FLUX_JOB_ID"];
const OF_FLUX_ITSELF: &str = "FLUX_URI";

/// The id of the scheduler's job that we are part of, if we are; `unnamed` if it has none.
pub(crate) fn outer_job(unnamed: &str) -> Option<String> {
    if std::env::var_os(SHIMS_VARIABLE).is_some() {
        return None; // that is a job of ours, dressed up as a scheduler's
    }
    let named = OF_A_REAL_SCHEDULER
        .iter()
        .find_map(|name| std::env::var(name).ok());
    named.or_else(|| std::env::var_os(OF_FLUX_ITSELF).map(|_| unnamed.to_owned()))
}

/// Are we part of a scheduler's job?
#[must_use]
pub fn in_a_schedulers_job() -> bool {
    outer_job("").is_some()
}

/// What the scheduler that the script is written for would set; Slurm's where it names none.
pub(crate) fn scheduler(
    script: &JobScript,
    id: &str,
    submitted_in: &Path,
    directory: &JobDirectory,
) -> forebay_host::Result<Vec<Variable>> {
    let header = &script.header;
    let tasks = header.task_count();
    let scheduler = header.scheduler.unwrap_or(Scheduler::Slurm);
    let host = machine::hostname();
    let node_file = match scheduler {
        Scheduler::Lsf | Scheduler::Pbs => {
            let lines = format!("{host}\n").repeat(tasks as usize);
            directory.add_node_file(&lines)?.into_os_string()
        }
        Scheduler::Slurm | Scheduler::Flux => OsString::new(),
    };
    let facts = Facts {
        id: id.as_ref(),
        name: script.job_name(),
        tasks: tasks.to_string(),
        processors: machine::processors().to_string(),
        host,
        submitted_in: submitted_in.as_os_str(),
        cpus_per_task: header.cpus_per_task.map(|n| n.to_string()),
        partition: header.partition.as_deref(),
        account: header.account.as_deref(),
        node_file,
    };
    let mut variables = Vec::new();
    let mut set = |(names, value): Names| {
        variables.extend(
            names
                .iter()
                .map(|name| ((*name).to_owned(), value.to_owned())),
        );
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
