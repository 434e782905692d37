//! Reads and writes `job.json`: the program, its environment and its result.
//! Assumes one writer, the process that runs the job. A reader takes a job without an end as killed once
//! that process is gone, or on another machine after 30 days.

use std::collections::BTreeMap;
use std::path::Path;

use forebay_host::process::{Identity, Liveness, ProcessRef, Transferred};
use forebay_host::{clock, files, state, system, users};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Error;
use crate::ids::{PROFILES, ids};
use crate::live_files;

const FORMAT: u32 = 1;
pub(crate) const NAME: &str = "job.json";
/// The temporary name during the write.
const TEMPORARY_NAME: &str = "job.fresh";
/// A job of another machine counts as ended after 30 days, more than schedulers allow.
const UNSEEN_S_MAX: f64 = 30.0 * 86_400.0;
/// Variables that affect I/O, and prefixes of such variables.
const VARIABLES: [&str; 1] = ["PNETCDF_HINTS"];
const PREFIXES: [&str; 5] = ["MPICH_", "ROMIO_", "OMPI_MCA_", "HDF5_", "FOREBAY_"];

/// The type of a recorded run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A job with a script.
    #[default]
    Run,
    /// A command.
    Profile,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum State {
    /// It runs, or it was killed.
    Running,
    /// It has ended.
    Ended,
}

/// The description of a job at its start.
#[derive(Debug, Clone, Default)]
pub struct JobDescription {
    /// The type: job or command.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// Path of the script; none for a command.
    pub script: Option<String>,
    /// The command line.
    pub command: Vec<String>,
    /// The working directory.
    pub directory: String,
    /// The number of nodes it requests.
    pub nodes: Option<u32>,
    /// The number of tasks it requests.
    pub tasks: Option<u32>,
    /// Variables in addition to this process's own. Only those that affect I/O are recorded.
    pub environment: BTreeMap<String, String>,
    /// ID of the scheduler's job it belongs to.
    pub scheduler_job: Option<String>,
    /// The state of the emulation; none without emulation.
    pub emulated: Option<Value>,
}

/// The process that runs the job.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Process {
    /// Its PID, valid in its PID namespace.
    pid: i32,
    /// Its start in clock ticks since boot.
    start_ticks: u64,
    /// The boot ID of its machine.
    boot_id: String,
    /// The name of its machine.
    host: String,
    /// Its PID namespace.
    pid_namespace: String,
}

/// The record of a job or command: `job.json` (docs/explanation/profiles.md).
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobFile {
    /// Version of this format.
    forebay_job: u32,
    /// Job or command.
    kind: Kind,
    /// Forebay's id; of a run of the tuner ID.RUN.
    id: String,
    /// The scheduler's id.
    scheduler_job: Option<String>,
    /// The name of the job.
    name: String,
    /// Absolute path of the script; null for a command.
    script: Option<String>,
    /// The words of the command, or the script and its arguments.
    command: Vec<String>,
    /// Where it was started.
    directory: String,
    /// Who started it.
    user: String,
    /// The machine of `forebay`.
    host: String,
    /// Requested nodes.
    nodes: Option<u32>,
    /// Requested tasks.
    tasks: Option<u32>,
    /// Processors of this machine.
    processors: usize,
    /// Start time, in seconds since 1970.
    started_unix_s: f64,
    /// End time; null until then, and if it was killed.
    ended_unix_s: Option<f64>,
    /// Whether it has ended.
    state: State,
    /// True if it was killed and `forebay clean` saw to it.
    killed: bool,
    /// The process that runs it.
    process: Process,
    /// Variables that affect I/O.
    environment: BTreeMap<String, String>,
    /// The library in front of the programs; null if there was none.
    pub(crate) library: Option<String>,
    /// The emulation, as in `forebay run --json`; of a run of the tuner its name.
    pub(crate) emulated: Option<Value>,
    /// What its programs on this machine moved by system calls, as the kernel counts it: in files, pipes
    /// and terminals. Null: not known.
    pub(crate) transferred: Option<Transferred>,
    /// What `forebay run --json` prints, without `emulated`, or what `forebay profile --json` prints.
    outcome: Option<Value>,
    /// Why it was not started.
    error: Option<String>,
    /// What to do about it.
    hint: Option<String>,
}

/// The members that show whether a job has ended.
#[derive(Debug, Deserialize)]
struct JobStatus {
    id: String,
    state: State,
    process: Process,
    #[serde(default)]
    started_unix_s: f64,
}

impl JobFile {
    pub(crate) fn new(job: &JobDescription, id: &str) -> Result<Self, Error> {
        let ours = ProcessRef::ours()?;
        let mut environment = variables();
        let added = job.environment.clone().into_iter();
        environment.extend(added.filter(|(name, _)| affects_io(name)));
        Ok(Self {
            forebay_job: FORMAT,
            kind: job.kind,
            id: id.to_owned(),
            scheduler_job: job.scheduler_job.clone(),
            name: job.name.clone(),
            script: job.script.clone(),
            command: job.command.clone(),
            directory: job.directory.clone(),
            user: users::user_name(),
            host: ours.host.clone(),
            nodes: job.nodes,
            tasks: job.tasks,
            processors: system::processors(),
            started_unix_s: now_unix_s(),
            ended_unix_s: None,
            state: State::Running,
            killed: false,
            process: Process {
                pid: ours.process.pid,
                start_ticks: ours.process.started_ticks,
                boot_id: ours.boot_id,
                host: ours.host,
                pid_namespace: ours.pid_namespace,
            },
            environment,
            library: None,
            emulated: job.emulated.clone(),
            transferred: None,
            outcome: None,
            error: None,
            hint: None,
        })
    }

    /// Sets the members about the end.
    pub(crate) fn end(
        &mut self,
        done: Result<&impl Serialize, (String, Option<String>)>,
    ) -> Result<(), Error> {
        self.state = State::Ended;
        self.ended_unix_s = Some(now_unix_s());
        match done {
            Ok(outcome) => {
                let outcome = serde_json::to_value(outcome).map_err(std::io::Error::other);
                self.outcome = Some(files::with_path(outcome, "write down", Path::new(NAME))?);
            }
            Err((error, hint)) => {
                self.error = Some(error);
                self.hint = hint;
            }
        }
        Ok(())
    }

    pub(crate) fn write(&self, directory: &Path) -> Result<(), Error> {
        write(directory, self)
    }
}

/// Whether a directory holds a record.
pub(crate) fn exists_in(directory: &Path) -> bool {
    files::status_of_name(&directory.join(NAME)).is_ok()
}

fn write(directory: &Path, job: &impl Serialize) -> Result<(), Error> {
    Ok(files::write_json(&directory.join(NAME), &directory.join(TEMPORARY_NAME), job)?)
}

fn read<T: serde::de::DeserializeOwned>(directory: &Path) -> Result<T, Error> {
    Ok(files::read_json(&directory.join(NAME))?)
}

impl JobStatus {
    /// Whether the job may still run, as far as this machine knows.
    fn may_run(&self) -> Result<bool, Error> {
        let process = &self.process;
        if self.state == State::Ended {
            return Ok(false);
        }
        let runner = ProcessRef {
            host: process.host.clone(),
            boot_id: process.boot_id.clone(),
            pid_namespace: process.pid_namespace.clone(),
            process: Identity { pid: process.pid, started_ticks: process.start_ticks },
        };
        Ok(match runner.liveness()? {
            Liveness::Alive => true,
            Liveness::Gone => false,
            Liveness::Unknown => now_unix_s() - self.started_unix_s < UNSEEN_S_MAX,
        })
    }
}

/// Whether the job of this record may still run. False if its `job.json` cannot be read.
pub(crate) fn may_run(directory: &Path) -> Result<bool, Error> {
    read::<JobStatus>(directory).map_or(Ok(false), |status| status.may_run())
}

/// Marks the record of a killed job, and completes it with what its programs did. Removes an empty
/// record.
///
/// # Errors
/// If the record cannot be written.
pub fn mark_killed(directory: &Path) -> Result<(), Error> {
    live_files::collect(directory)?;
    let mut job: serde_json::Map<String, Value> = match read(directory) {
        Err(Error::Host(error)) if error.is_not_found() => return remove_if_empty(directory),
        job => job?,
    };
    if job.get("state") != Some(&Value::from("running")) {
        return Ok(()); // the job was killed after it recorded its end
    }
    job.insert("state".to_owned(), "ended".into());
    job.insert("killed".to_owned(), true.into());
    write(directory, &job)
}

fn remove_if_empty(directory: &Path) -> Result<(), Error> {
    let names = files::names_in(directory).unwrap_or_default();
    if names.iter().all(|name| name == TEMPORARY_NAME) && files::status(directory).is_ok() {
        files::remove_tree(directory)?;
    }
    Ok(())
}

/// Completes records of killed jobs without any other trace: commands, and jobs killed at their
/// very end. `is_recorded` returns true for jobs that are cleaned separately.
///
/// # Errors
/// If a record cannot be written, or /proc cannot be read.
pub fn complete_abandoned(is_recorded: &dyn Fn(&str) -> bool) -> Result<(), Error> {
    for state_directory in state::directories() {
        let profiles = state_directory.join(PROFILES);
        for id in ids(&profiles) {
            let directory = profiles.join(id.to_string());
            let Ok(status) = read::<JobStatus>(&directory) else {
                continue; // incomplete or damaged
            };
            if status.state == State::Running && !is_recorded(&status.id) && !status.may_run()? {
                mark_killed(&directory)?;
            }
        }
    }
    Ok(())
}

fn now_unix_s() -> f64 {
    clock::unix_milliseconds() as f64 / 1000.0
}

fn variables() -> BTreeMap<String, String> {
    let all = std::env::vars_os().map(|(name, value)| (files::lossy(name), files::lossy(value)));
    all.filter(|(name, _)| affects_io(name)).collect()
}

fn affects_io(name: &str) -> bool {
    VARIABLES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}
