//! `job.json`: what ran, where, and how it ended.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use forebay_host::process::{Identity, Liveness, ProcessRef};
use forebay_host::{clock, files, machine, state};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::retention;
use crate::series::{Run, What};
use crate::{Error, JobScript, Order};
use forebay_record::{PROFILES, Records};

const FORMAT: u32 = 1;
pub(super) const NAME: &str = "job.json";
/// Its name while it is written.
const FRESH: &str = "job.fresh";
/// A job that cannot be seen from here is over after this time: 30 days, more than schedulers give.
const UNSEEN_S_MAX: f64 = 30.0 * 86_400.0;
/// Variables that bear on I/O: these, and those that begin so.
const VARIABLES: [&str; 1] = ["PNETCDF_HINTS"];
const PREFIXES: [&str; 5] = ["MPICH_", "ROMIO_", "OMPI_MCA_", "HDF5_", "FOREBAY_"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Run,
    Profile,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Running,
    Ended,
}

/// The process that runs the job.
#[derive(Debug, Serialize, Deserialize)]
struct Process {
    pid: i32,
    start_ticks: u64,
    boot_id: String,
    host: String,
    pid_namespace: String,
}

/// Each member is described in docs/profiles.md.
#[derive(Debug, Serialize)]
pub(super) struct JobFile {
    forebay_job: u32,
    kind: Kind,
    id: String,
    scheduler_job: Option<String>,
    name: String,
    script: Option<String>,
    command: Vec<String>,
    directory: String,
    user: String,
    host: String,
    nodes: Option<u32>,
    tasks: Option<u32>,
    processors: usize,
    started_unix_s: f64,
    ended_unix_s: Option<f64>,
    state: State,
    killed: bool,
    process: Process,
    environment: BTreeMap<String, String>,
    pub(super) library: Option<String>,
    pub(super) emulated: Option<Value>,
    outcome: Option<Value>,
    error: Option<String>,
    hint: Option<String>,
}

/// What tells whether a job is over.
#[derive(Debug, Deserialize)]
struct Standing {
    id: String,
    state: State,
    process: Process,
    #[serde(default)]
    started_unix_s: f64,
}

impl JobFile {
    pub(super) fn of_order(order: &Order, id: &str) -> Result<Self, Error> {
        let path = order.script.path.as_os_str();
        let words = std::iter::once(path).chain(order.arguments.iter().map(AsRef::as_ref));
        let mut job = Self::of_script(order.script, id)?;
        job.command = words.map(text).collect();
        job.emulated = order
            .recording
            .as_ref()
            .and_then(|recording| recording.emulated)
            .map(|emulated| emulated());
        Ok(job)
    }

    pub(super) fn of_run(
        run: &Run,
        script: &JobScript,
        works_in: &Path,
        id: &str,
    ) -> Result<Self, Error> {
        let mut job = Self::of_script(script, id)?;
        job.command = match &run.what {
            What::Script(path) => vec![text(path)],
            What::Command(words) => words.clone(),
        };
        job.directory = text(works_in);
        let added = run.environment.clone().into_iter();
        job.environment
            .extend(added.filter(|(name, _)| bears_on_io(name)));
        Ok(job)
    }

    fn of_script(script: &JobScript, id: &str) -> Result<Self, Error> {
        let mut job = Self::new(Kind::Run, id, script.job_name())?;
        job.script = Some(text(Path::new(&job.directory).join(&script.path)));
        job.nodes = script.header.nodes;
        job.tasks = Some(script.header.task_count());
        Ok(job)
    }

    pub(super) fn of_command(words: &[OsString], id: &str) -> Result<Self, Error> {
        let program = words.first().map(Path::new).and_then(Path::file_name);
        let mut job = Self::new(Kind::Profile, id, program.map(text).unwrap_or_default())?;
        job.command = words.iter().map(text).collect();
        Ok(job)
    }

    fn new(kind: Kind, id: &str, name: String) -> Result<Self, Error> {
        let ours = ProcessRef::ours()?;
        Ok(Self {
            forebay_job: FORMAT,
            kind,
            id: id.to_owned(),
            scheduler_job: forebay_scheduler::scheduler_job_id(id).filter(|outer| outer != id),
            name,
            script: None,
            command: Vec::new(),
            directory: text(machine::current_directory()?),
            user: machine::user_name(),
            host: ours.host.clone(),
            nodes: None,
            tasks: None,
            processors: machine::processors(),
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
            environment: variables(),
            library: None,
            emulated: None,
            outcome: None,
            error: None,
            hint: None,
        })
    }

    /// Sets what is known of the end.
    pub(super) fn end(&mut self, done: Result<&impl Serialize, &Error>) -> Result<(), Error> {
        self.state = State::Ended;
        self.ended_unix_s = Some(now_unix_s());
        match done {
            Ok(outcome) => {
                let outcome = serde_json::to_value(outcome).map_err(std::io::Error::other);
                self.outcome = Some(files::named(outcome, "write down", Path::new(NAME))?);
            }
            Err(error) => {
                self.error = Some(error.to_string());
                self.hint = error.hint();
            }
        }
        Ok(())
    }

    pub(super) fn write(&self, directory: &Path) -> Result<(), Error> {
        write(directory, self)
    }
}

/// Is there one?
pub(super) fn lies_in(directory: &Path) -> bool {
    files::status_of_name(&directory.join(NAME)).is_ok()
}

fn write(directory: &Path, job: &impl Serialize) -> Result<(), Error> {
    Ok(files::write_json(
        &directory.join(NAME),
        &directory.join(FRESH),
        job,
    )?)
}

fn read<T: serde::de::DeserializeOwned>(directory: &Path) -> Result<T, Error> {
    Ok(files::read_json(&directory.join(NAME))?)
}

impl Standing {
    /// May the job still run, as far as can be told from here?
    fn may_run(&self) -> Result<bool, Error> {
        let process = &self.process;
        if self.state == State::Ended {
            return Ok(false);
        }
        let runner = ProcessRef {
            host: process.host.clone(),
            boot_id: process.boot_id.clone(),
            pid_namespace: process.pid_namespace.clone(),
            process: Identity {
                pid: process.pid,
                started_ticks: process.start_ticks,
            },
        };
        Ok(match runner.liveness()? {
            Liveness::Alive => true,
            Liveness::Gone => false,
            Liveness::Unknown => now_unix_s() - self.started_unix_s < UNSEEN_S_MAX,
        })
    }
}

/// May the job of this record still run? One whose `job.json` cannot be read does not.
pub(super) fn may_run(directory: &Path) -> Result<bool, Error> {
    read::<Standing>(directory).map_or(Ok(false), |standing| standing.may_run())
}

/// Says in the record of a job that was killed that it was. One that was killed before anything was
/// written there is taken away.
pub(crate) fn complete_killed(directory: &Path) -> Result<(), Error> {
    let mut job: serde_json::Map<String, Value> = match read(directory) {
        Err(Error::Host(error)) if error.is_not_found() => return remove_if_empty(directory),
        job => job?,
    };
    if job.get("state") != Some(&Value::from("running")) {
        return Ok(()); // it was killed after it had written how it ended
    }
    job.insert("state".to_owned(), "ended".into());
    job.insert("killed".to_owned(), true.into());
    write(directory, &job)
}

fn remove_if_empty(directory: &Path) -> Result<(), Error> {
    let names = files::names_in(directory).unwrap_or_default();
    if names.iter().all(|name| name == FRESH) && files::status(directory).is_ok() {
        files::remove_tree(directory)?;
    }
    Ok(())
}

/// Completes records of killed jobs that hold nothing else: commands, and jobs that were killed at their
/// very end. `records` are those which will be cleaned by themselves.
///
/// # Errors
/// If one cannot be written, or /proc cannot be read.
pub fn complete_abandoned(records: &Records) -> Result<(), Error> {
    for state_directory in state::directories() {
        let profiles = state_directory.join(PROFILES);
        for id in retention::ids(&profiles) {
            let directory = profiles.join(id.to_string());
            let Ok(standing) = read::<Standing>(&directory) else {
                continue; // it is just being made, or nobody can tell
            };
            let is_recorded = records.found.iter().any(|job| job.record.id == standing.id);
            if standing.state == State::Running && !is_recorded && !standing.may_run()? {
                complete_killed(&directory)?;
            }
        }
    }
    Ok(())
}

/// JSON is text: what is not UTF-8 is replaced.
pub(super) fn text(words: impl AsRef<std::ffi::OsStr>) -> String {
    words.as_ref().to_string_lossy().into_owned()
}

fn now_unix_s() -> f64 {
    clock::unix_milliseconds() as f64 / 1000.0
}

fn variables() -> BTreeMap<String, String> {
    let all = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
    all.filter(|(name, _)| bears_on_io(name)).collect()
}

fn bears_on_io(name: &str) -> bool {
    VARIABLES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}
