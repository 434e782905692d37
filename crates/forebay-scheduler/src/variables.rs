//! The variables of a job: its scheduler's, and those that locate the shims.
//! Assumes that the caller sets them only outside a scheduler's job. Never changes the environment of this process.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use forebay_host::system;

use crate::header::Scheduler;
use crate::script::JobScript;

use crate::job_facts::{Facts, Names};
use crate::{lsf, pbs, slurm};

/// Names the directory of the shims, for the job's processes.
pub const SHIMS_VARIABLE: &str = "FOREBAY_SHIMS";

/// The number of tasks that the job requests, for scripts of any scheduler.
pub const TASKS_VARIABLE: &str = "FOREBAY_NTASKS";
/// The job ID, for scripts of any scheduler.
pub const JOB_ID_VARIABLE: &str = "FOREBAY_JOB_ID";

/// The name and the value of a variable.
pub type Variable = (String, OsString);
/// Set by schedulers in their jobs. Flux sets no job ID in the environment of a script, only its
/// URI (flux-environment(7)).
const JOB_ID_VARIABLES: [&str; 4] = ["SLURM_JOB_ID", "LSB_JOBID", "PBS_JOBID", "FLUX_JOB_ID"];
const OF_FLUX_ITSELF: &str = "FLUX_URI";

/// The ID of the current scheduler's job; `unnamed` if the job has no ID. None outside of a job.
pub fn scheduler_job_id(unnamed: &str) -> Option<String> {
    if std::env::var_os(SHIMS_VARIABLE).is_some() {
        return None; // a job of Forebay, which imitates a scheduler's job
    }
    let named = JOB_ID_VARIABLES.iter().find_map(|name| std::env::var(name).ok());
    named.or_else(|| std::env::var_os(OF_FLUX_ITSELF).map(|_| unnamed.to_owned()))
}

/// Whether this process belongs to a scheduler's job.
pub fn in_a_schedulers_job() -> bool {
    scheduler_job_id("").is_some()
}

/// The variables that the script's scheduler would set; Slurm's if the script names none. Calls
/// `write_node_file` to write the lines of a node file, if the scheduler has one.
///
/// # Errors
/// The errors of `write_node_file`.
pub fn job_variables(
    script: &JobScript,
    id: &str,
    submit_directory: &Path,
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
        requested_tasks: header.requests_tasks().then(|| tasks.to_string()),
        processors: system::processors().to_string(),
        host,
        submit_directory: submit_directory.as_os_str(),
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
        // Flux sets variables for tasks of `flux run`, not for the script (flux-environment(7)).
        // With them, an MPI program in the script would look for Flux.
        Scheduler::Flux => {}
    }
    Ok(variables)
}

/// The user's own bash start-up file, while `BASH_ENV` names the file of Forebay.
const BASH_ENV_OF_USER: &str = "FOREBAY_BASH_ENV";

/// Adds the shims to PATH again, if a start-up file of a shell removed them.
macro_rules! add_shims_to_path {
    () => {
        r#"case ":$PATH" in ":${FOREBAY_SHIMS-}":*) ;; *) PATH=${FOREBAY_SHIMS:+$FOREBAY_SHIMS:}$PATH ;; esac
"#
    };
}

/// The start-up file for bash scripts. The user's own start-up file may set PATH.
pub const BASH_START_UP: &str = concat!(
    r#"if [ -n "${FOREBAY_BASH_ENV-}" ] && [ -r "$FOREBAY_BASH_ENV" ]; then . "$FOREBAY_BASH_ENV"; fi
"#,
    add_shims_to_path!()
);

/// The command of a login shell that runs the script in its first argument.
const LOGIN_COMMAND: &str = concat!(add_shims_to_path!(), ". \"$0\"");

/// The options to add to those of the shell in the `#!` line, before the script.
///
/// A login shell reads `/etc/profile` first. That file sets `PATH`, and Lmod and Environment Modules
/// set `BASH_ENV` in it. So the shell adds the shims itself, and then reads the script.
pub fn options_for_login_shell(interpreter: &[String]) -> &'static [&'static str] {
    let Some((shell, options)) = interpreter.split_first() else { return &[] };
    let name = Path::new(shell).file_name().and_then(OsStr::to_str);
    // env(1) names the shell in its first argument that is not an option: `/usr/bin/env -S bash -l`.
    let (name, options) = if name == Some("env") {
        let words = options.iter().position(|word| !word.starts_with('-') && !word.contains('='));
        let Some(at) = words else { return &[] };
        (Path::new(&options[at]).file_name().and_then(OsStr::to_str), &options[at + 1..])
    } else {
        (name, options)
    };
    let is_login = |word: &String| {
        word == "--login"
            || (word.starts_with('-') && !word.starts_with("--") && word.contains('l'))
    };
    let reads_profile = matches!(name, Some("bash" | "sh" | "dash" | "ksh" | "zsh"));
    if reads_profile && options.iter().any(is_login) { &["-c", LOGIN_COMMAND] } else { &[] }
}

/// The variables that locate the shims: first in PATH, and restored at each start of bash.
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
    // In a nested job, BASH_ENV is the outer job's, and the user's own value is saved already.
    let within_a_job = std::env::var_os(SHIMS_VARIABLE).is_some();
    if let Some(own) = std::env::var_os("BASH_ENV").filter(|_| !within_a_job) {
        variables.push((BASH_ENV_OF_USER.to_owned(), own));
    }
    variables
}

/// `directory` with a trailing slash, as in DataWarp: scripts append names to it.
pub fn with_slash(directory: &Path) -> OsString {
    let mut text = directory.as_os_str().to_owned();
    text.push(OsStr::new("/"));
    text
}
