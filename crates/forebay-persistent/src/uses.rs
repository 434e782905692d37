//! Records which jobs use a persistent allocation, in files next to the data. `forebay run` also
//! holds a lock of the directory. After a kill, the liveness of the recorded processes decides.

use std::path::{Path, PathBuf};

use forebay_host::process::{self, Identity, Liveness, ProcessRef};
use forebay_host::{files, system, users};
use forebay_record::{RUN_VARIABLE, Record};
use forebay_store::persistent::Persistent;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Result;

/// One job's use of an allocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Use {
    /// The scheduler's job id, else Forebay's.
    pub job_id: String,
    /// Forebay's id, which `forebay clean` takes.
    pub run_id: String,
    /// The path of the script, as the user gave it.
    pub script: String,
    /// The user's name.
    pub user: String,
    /// Start time, in seconds since 1970.
    pub began_unix_s: u64,
    /// The process that runs the job.
    #[serde(flatten)]
    pub runner: ProcessRef,
    /// True if data are to be staged out of the allocation.
    pub stages_out: bool,
    /// True if a program requested that. The request is in the job's own allocation.
    #[serde(default)]
    is_asked: bool,
    /// Processes of another user that could not be ended. Their environment does not name the job.
    #[serde(default)]
    remaining: Vec<Identity>,
    /// The directory with the job's files outside of its allocation.
    job_directory: PathBuf,
}

/// The state of a job that uses an allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UseState {
    /// Its `forebay run` is alive.
    Running,
    /// Its `forebay run` was killed; these processes are alive.
    Processes(Vec<i32>),
    /// The job was killed, or its stage-out failed.
    Left,
    /// Only its own machine or container knows the state.
    Elsewhere,
}

/// All known uses of an allocation.
#[derive(Debug, Default)]
pub struct Uses {
    /// Readable uses with their states.
    pub found: Vec<(Use, UseState)>,
    /// Reasons why other uses cannot be read.
    pub unreadable: Vec<String>,
}

impl std::fmt::Display for Use {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "job {} ({}, {}", self.run_id, self.script, self.user)?;
        if self.runner.host != system::hostname() {
            write!(f, ", on {}", self.runner.host)?;
        }
        f.write_str(")")
    }
}

impl Use {
    pub(crate) fn of(record: &Record, job_id: &str, stages_out: bool) -> Self {
        Self {
            job_id: job_id.to_owned(),
            run_id: record.id.clone(),
            script: record.script.clone(),
            user: users::user_name(),
            began_unix_s: record.began_unix_s,
            runner: record.runner.clone(),
            stages_out,
            is_asked: false,
            remaining: Vec::new(),
            job_directory: record.job_directory.clone(),
        }
    }

    /// The path of the use file.
    pub(crate) fn file(record: &Record, uses: &Path) -> PathBuf {
        uses.join(format!(
            "{}-{}@{}.json",
            record.id, record.runner.process.pid, record.runner.host
        ))
    }

    /// Writes the use file.
    pub(crate) fn write(&self, file: &Path) -> forebay_host::Result<()> {
        // The allocation's owner reads it, and members can change names in its directory.
        files::write_json_as(file, &file.with_extension("fresh"), self, 0o644)
    }

    /// Records that a program requested a stage-out of the allocation.
    pub(crate) fn set_stages_out(file: &Path) -> forebay_host::Result<()> {
        let mut written = files::read_own_json::<Self>(file)?;
        written.stages_out = true;
        written.is_asked = true;
        written.write(file)
    }

    /// Records processes that still run.
    pub(crate) fn set_survivors(file: &Path, processes: &[i32]) -> forebay_host::Result<()> {
        let mut written = files::read_own_json::<Self>(file)?;
        let alive = processes.iter().filter_map(|pid| Identity::of(*pid).ok()); // skips ended processes
        written.remaining = alive.collect();
        written.write(file)
    }

    /// Recorded processes that are still alive.
    pub(crate) fn remaining(&self) -> impl Iterator<Item = i32> {
        let alive = self.remaining.iter().filter(|process| process.is_alive());
        alive.map(|process| process.pid)
    }

    /// Reads the use file of a job of this user; none if it does not exist. One of another user is an error: it names
    /// processes to end.
    pub(crate) fn of_own_job(file: &Path) -> forebay_host::Result<Option<Self>> {
        found(files::read_own_json(file))
    }

    /// True if a program requested a stage-out of the allocation.
    pub(crate) fn has_requests(&self) -> bool {
        self.is_asked
    }

    /// `owner` is the user of the job.
    fn state(&self, owner: u32) -> forebay_host::Result<UseState> {
        match self.runner.liveness()? {
            Liveness::Alive => return Ok(UseState::Running),
            Liveness::Unknown => return Ok(UseState::Elsewhere),
            // No process survives a restart of the machine.
            Liveness::Gone if !self.runner.is_of_this_boot()? => return Ok(UseState::Left),
            Liveness::Gone => {}
        }
        let run = self.job_directory.as_os_str();
        let mut processes = match process::with_env(RUN_VARIABLE, run, self.runner.process) {
            Err(error) if error.is_denied() => return Ok(UseState::Elsewhere),
            processes => processes?,
        };
        processes.extend(self.remaining());
        if !users::is_root() && owner != users::user_id() {
            // Their environment tells nobody else which job they belong to, so all of them count.
            processes.extend(process::of_user(owner, self.runner.process)?);
            if process::some_are_hidden() {
                return Ok(UseState::Processes(processes));
            }
        }
        processes.sort_unstable();
        processes.dedup();
        Ok(match processes.is_empty() {
            true => UseState::Left,
            false => UseState::Processes(processes),
        })
    }
}

/// A file that was read; none if it does not exist.
fn found(read: forebay_host::Result<Use>) -> forebay_host::Result<Option<Use>> {
    match read {
        Err(error) if error.is_not_found() => Ok(None),
        read => read.map(Some),
    }
}

impl Uses {
    /// The uses of an allocation; none if the user may not read them.
    pub fn of(persistent: &Persistent) -> Result<Self> {
        let directory = persistent.uses();
        let names = match files::names_in(&directory) {
            Err(error) if error.is_denied() || error.is_not_found() => return Ok(Self::default()),
            names => names?,
        };
        let mut uses = Self::default();
        for name in names {
            let path = directory.join(name);
            if path.extension().is_none_or(|extension| extension != "json") {
                continue; // a temporary file of a use
            }
            let owner = match files::status_of_name(&path) {
                Err(error) if error.is_not_found() => continue, // the job has just ended
                status => status?.owner,
            };
            match found(files::read_json::<Use>(&path)) {
                Ok(None) => {} // the job has just ended
                Ok(Some(found)) => {
                    let state = found.state(owner)?;
                    uses.found.push((found, state));
                }
                Err(error) => uses.unreadable.push(error.to_string()),
            }
        }
        Ok(uses)
    }

    /// Descriptions of the uses in such a state.
    pub(crate) fn matching(&self, is_wanted: impl Fn(&UseState) -> bool) -> Vec<String> {
        let wanted = self.found.iter().filter(|(_, state)| is_wanted(state));
        wanted.map(|(one, _)| one.to_string()).collect()
    }
}
