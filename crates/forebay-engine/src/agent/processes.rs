//! Starts the process of a step, waits until it is ready, and ends the processes of a node. A process
//! is found by variables in its environment, so that one which an earlier agent started is found, too.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use forebay_host::process::{self, Identity, SERVES_JOB_VARIABLE, command};
use forebay_host::{clock, files, mounts, network};

use crate::steps::{EngineStep, Ready};

/// Names the job's directory for the processes of a node.
const NODE_VARIABLE: &str = "FOREBAY_NODE";
/// Names the step of a process.
const STEP_VARIABLE: &str = "FOREBAY_STEP";
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// The time for a process to end after SIGINT, and again after SIGKILL.
const END_MAX: Duration = Duration::from_secs(10);
/// The part of a log that is reported.
const LOG_LINES: usize = 12;

/// The process of a step.
#[derive(Debug)]
pub(super) enum Process {
    /// This agent started it.
    Child(Child),
    /// An earlier agent started it.
    Adopted(Identity),
}

impl Process {
    /// How it ended; none while it runs.
    pub(super) fn ended(&mut self) -> Option<String> {
        match self {
            Self::Child(child) => match child.try_wait() {
                Ok(None) => None,
                Ok(Some(status)) => Some(status.to_string()),
                Err(error) => Some(error.to_string()),
            },
            Self::Adopted(identity) => {
                (!identity.is_alive()).then(|| "it is not there any more".to_owned())
            }
        }
    }

    /// Looks for the process of a step that an earlier agent started.
    pub(super) fn adopt(step: &str, node: &Path) -> Option<Self> {
        let pid = of_step(node, step).ok()?.into_iter().next()?;
        Identity::of(pid).ok().map(Self::Adopted)
    }
}

/// The log of a step.
pub(super) fn log_of(directory: &Path, step: &str) -> PathBuf {
    directory.join("log").join(format!("{step}.log"))
}

/// The last lines of the log of a step.
pub(super) fn end_of_log(directory: &Path, step: &str) -> String {
    let text = files::read_lossy(&log_of(directory, step)).unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}

/// Starts the process of a step; none if the step has none.
pub(super) fn start(directory: &Path, step: &EngineStep) -> Result<Option<Child>, String> {
    let Some((program, arguments)) = step.argv.split_first() else {
        return Ok(None);
    };
    let text = |error: forebay_host::Error| error.to_string();
    let log = files::open_to_append(&log_of(directory, &step.id)).map_err(text)?;
    let again = log.try_clone().map_err(|error| error.to_string())?;
    let mut process = command(program);
    process.args(arguments).current_dir(directory).envs(&step.environment);
    process.env(NODE_VARIABLE, directory).env(STEP_VARIABLE, &step.id);
    process.env(SERVES_JOB_VARIABLE, "1");
    process.stdin(Stdio::null()).stdout(log).stderr(again);
    in_its_own_group(&mut process);
    process.spawn().map(Some).map_err(|error| format!("cannot run {program}: {error}"))
}

/// Signals to the agent do not reach the process.
fn in_its_own_group(process: &mut Command) {
    use std::os::unix::process::CommandExt;
    process.process_group(0);
}

/// Waits until a step is ready.
pub(super) fn wait_until_ready(step: &EngineStep, child: &mut Child) -> Result<(), String> {
    let limit = Duration::from_secs(step.ready_s_max.into());
    let began = clock::now();
    loop {
        let ended = child.try_wait().map_err(|error| error.to_string())?;
        match (&step.ready, ended) {
            (Ready::Ended, Some(status)) if status.success() => return Ok(()),
            (_, Some(status)) => return Err(format!("it ended: {status}")),
            (Ready::Started, None) => return Ok(()),
            (Ready::Accepts(address), None) if network::accepts(*address, POLL_INTERVAL * 10) => {
                return Ok(());
            }
            (Ready::Mounted(path), None)
                if mounts::is_mount_point(path).map_err(|error| error.to_string())? =>
            {
                return Ok(());
            }
            _ => {}
        }
        if began.elapsed() > limit {
            return Err(format!("it was not ready within {} s", step.ready_s_max));
        }
        clock::sleep(POLL_INTERVAL);
    }
}

/// The processes of a node that live.
fn of_node(directory: &Path) -> forebay_host::Result<Vec<i32>> {
    process::started_with(NODE_VARIABLE, directory.as_os_str())
}

/// The processes of a step that live.
fn of_step(directory: &Path, step: &str) -> forebay_host::Result<Vec<i32>> {
    let mut found = process::started_with(STEP_VARIABLE, step.as_ref())?;
    let of_node = of_node(directory)?;
    found.retain(|pid| of_node.contains(pid));
    Ok(found)
}

/// Kills the processes of a step.
pub(super) fn end_step(directory: &Path, step: &str) -> Result<(), String> {
    let text = |error: forebay_host::Error| error.to_string();
    let began = clock::now();
    loop {
        let found = of_step(directory, step).map_err(text)?;
        match found.first() {
            None => return Ok(()),
            Some(pid) if began.elapsed() > END_MAX => {
                return Err(format!("process {pid} of {step} does not end"));
            }
            Some(_) => process::end(&found, true).map_err(text)?,
        }
        clock::sleep(POLL_INTERVAL);
    }
}

/// Ends all processes of a node; those that do not end, with number and reason. `at_once` leaves them no time.
pub(super) fn end_all(directory: &Path, at_once: bool) -> Result<Vec<String>, String> {
    let text = |error: forebay_host::Error| error.to_string();
    let began = clock::now();
    loop {
        let found = of_node(directory).map_err(text)?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let waited = began.elapsed();
        let kills = at_once || waited > END_MAX;
        if waited > 2 * END_MAX {
            let described = |pid: &i32| format!("process {pid} does not end");
            return Ok(found.iter().map(described).collect());
        }
        if kills {
            process::end(&found, true).map_err(text)?;
        } else if waited < POLL_INTERVAL {
            process::interrupt(&found).map_err(text)?; // as SIGTERM is postponed
        }
        clock::sleep(POLL_INTERVAL);
    }
}
