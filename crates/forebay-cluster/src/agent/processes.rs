//! Starts the process of a step, waits until it is ready, and ends the processes of a node. A process
//! is found by variables in its environment, so that one which an earlier agent started is found, too.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use forebay_engine::{EngineStep, Ready};
use forebay_host::process::{self, Identity, SERVES_JOB_VARIABLE, command};
use forebay_host::{clock, files, mounts, network};

/// Names the node and the job's directory for the processes of a node.
const NODE_VARIABLE: &str = "FOREBAY_NODE";
/// Names the step of a process.
const STEP_VARIABLE: &str = "FOREBAY_STEP";
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// The time for a process to end after SIGINT, and again after SIGKILL.
const END_MAX: Duration = Duration::from_secs(10);
/// Runs a command and writes its status to a file, for an agent that replaces the one that started it.
const KEEP_STATUS: &str = r#"file=$1; shift; "$@"; status=$?; echo $status >"$file"; exit $status"#;
/// The part of a log that is reported.
const LOG_LINES: usize = 12;
const DUMP: &str = "--- begin dump of recent events ---";

/// A node of a job. Its name is part of what marks its processes: nodes may share their process numbers.
#[derive(Debug, Clone)]
pub(super) struct NodePlace {
    /// The node's name.
    pub(super) name: String,
    /// The job's directory there.
    pub(super) directory: PathBuf,
}

impl NodePlace {
    /// What the processes have in their environment.
    fn mark(&self) -> OsString {
        let mut mark = OsString::from(format!("{}:", self.name));
        mark.push(&self.directory);
        mark
    }

    /// The log of a step.
    fn log_of(&self, step: &str) -> PathBuf {
        self.directory.join("log").join(format!("{step}.log"))
    }

    /// The file with the status of a step that ended.
    fn status_of(&self, step: &str) -> PathBuf {
        self.directory.join("log").join(format!("{step}.status"))
    }
}

/// The process of a step.
#[derive(Debug)]
pub(super) enum Process {
    /// This agent started it.
    Child(Child),
    /// An earlier agent started it. Its status is in the file, if it ended by itself and had to end.
    Adopted(Identity, PathBuf),
}

/// How a process ended.
pub(super) struct ProcessEnd {
    pub(super) is_success: bool,
    /// By SIGKILL: its log cannot say why.
    pub(super) is_killed: bool,
    pub(super) how: String,
}

impl Process {
    /// How it ended; none while it runs.
    pub(super) fn ended(&mut self) -> Option<ProcessEnd> {
        let failed = |how: String| ProcessEnd { is_success: false, is_killed: false, how };
        match self {
            Self::Child(child) => match child.try_wait() {
                Ok(None) => None,
                Ok(Some(status)) => Some(ProcessEnd {
                    is_success: status.success(),
                    is_killed: status
                        .signal()
                        .is_some_and(|signal| process::signal_number("KILL") == Some(signal)),
                    how: status.to_string(),
                }),
                Err(error) => Some(failed(error.to_string())),
            },
            Self::Adopted(identity, _) if identity.is_alive() => None,
            Self::Adopted(_, file) => Some(match status_in(file) {
                Some(status) => ProcessEnd {
                    is_success: status == 0,
                    is_killed: false,
                    how: format!("exit status: {status}"),
                },
                None => failed("it is not there any more".to_owned()),
            }),
        }
    }

    /// The memory that it uses, in bytes; none if it ended.
    pub(super) fn memory_bytes(&self) -> Option<u64> {
        match self {
            Self::Child(child) => process::memory_bytes(child.id().cast_signed()),
            Self::Adopted(identity, _) => process::memory_bytes(identity.pid),
        }
    }

    /// Looks for the process of a step that an earlier agent started.
    pub(super) fn adopt(step: &str, place: &NodePlace) -> Option<Self> {
        let pid = of_step(place, step).ok()?.into_iter().next()?;
        let identity = Identity::of(pid).ok()?;
        Some(Self::Adopted(identity, place.status_of(step)))
    }

    /// The process of a step that is not there.
    pub(super) fn gone(step: &str, place: &NodePlace) -> Self {
        Self::Adopted(Identity::default(), place.status_of(step))
    }

    /// Whether it runs, or left its status.
    pub(super) fn is_known(&self) -> bool {
        match self {
            Self::Child(_) => true,
            Self::Adopted(identity, file) => identity.is_alive() || status_in(file).is_some(),
        }
    }
}

fn status_in(file: &Path) -> Option<i32> {
    files::read_lossy(file).ok()?.trim().parse().ok()
}

/// The last lines of the log of a step.
pub(super) fn end_of_log(place: &NodePlace, step: &str) -> String {
    let text = files::read_lossy(&place.log_of(step)).unwrap_or_default();
    // Ceph's programs write why they ended before a dump of their last events.
    let end = text.find(DUMP).unwrap_or(text.len());
    let lines: Vec<_> = text[..end].lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}

/// Starts the process of a step; none if the step has none.
pub(super) fn start(place: &NodePlace, step: &EngineStep) -> Result<Option<Child>, String> {
    let status = place.status_of(&step.id);
    let mut argv = step.argv.clone();
    if argv.is_empty() {
        return Ok(None);
    }
    if step.ready == Ready::Ended {
        argv.splice(0..0, ["/bin/sh", "-c", KEEP_STATUS, "sh"].map(str::to_owned));
        argv.insert(4, status.to_string_lossy().into_owned());
    }
    let text = |error: forebay_host::Error| error.to_string();
    files::remove_if_present(&status).map_err(text)?;
    let log = files::open_to_append(&place.log_of(&step.id)).map_err(text)?;
    let again = log.try_clone().map_err(|error| error.to_string())?;
    let mut process = command(&argv[0]);
    process.args(&argv[1..]).current_dir(&place.directory).envs(&step.environment);
    process.env(NODE_VARIABLE, place.mark()).env(STEP_VARIABLE, &step.id);
    process.env(SERVES_JOB_VARIABLE, "1");
    process.stdin(Stdio::null()).stdout(log).stderr(again);
    in_its_own_group(&mut process);
    process.spawn().map(Some).map_err(|error| format!("cannot run {}: {error}", argv[0]))
}

/// Signals to the agent do not reach the process.
fn in_its_own_group(process: &mut Command) {
    use std::os::unix::process::CommandExt;
    process.process_group(0);
}

/// Waits until a step is ready.
pub(super) fn wait_until_ready(step: &EngineStep, process: &mut Process) -> Result<(), String> {
    let limit = Duration::from_secs(step.ready_s_max.into());
    let began = clock::now();
    loop {
        match (&step.ready, process.ended()) {
            (Ready::Ended, Some(end)) if end.is_success => return Ok(()),
            (_, Some(end)) => return Err(format!("it ended: {}", end.how)),
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
fn of_node(place: &NodePlace) -> forebay_host::Result<Vec<i32>> {
    process::started_with(NODE_VARIABLE, &place.mark())
}

/// The processes of a step that live.
fn of_step(place: &NodePlace, step: &str) -> forebay_host::Result<Vec<i32>> {
    let mut found = process::started_with(STEP_VARIABLE, step.as_ref())?;
    let of_node = of_node(place)?;
    found.retain(|pid| of_node.contains(pid));
    Ok(found)
}

/// Kills the processes of a step.
pub(super) fn end_step(place: &NodePlace, step: &str) -> Result<(), String> {
    let text = |error: forebay_host::Error| error.to_string();
    let began = clock::now();
    loop {
        let found = of_step(place, step).map_err(text)?;
        match found.first() {
            None => return Ok(()),
            Some(pid) if began.elapsed() > END_MAX => {
                return Err(format!("process {pid} of {step} does not end"));
            }
            Some(_) => process::terminate(&found, true).map_err(text)?,
        }
        clock::sleep(POLL_INTERVAL);
    }
}

/// Ends all processes of a node; those that do not end, with number and reason. `at_once` leaves them no time.
pub(super) fn end_all(place: &NodePlace, at_once: bool) -> Result<Vec<String>, String> {
    let text = |error: forebay_host::Error| error.to_string();
    let began = clock::now();
    loop {
        let found = of_node(place).map_err(text)?;
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
            process::terminate(&found, true).map_err(text)?;
        } else if waited < POLL_INTERVAL {
            process::interrupt(&found).map_err(text)?; // as SIGTERM is postponed
        }
        clock::sleep(POLL_INTERVAL);
    }
}
