//! Which jobs use a persistent allocation. Each says so in a file next to the data, and `forebay run` holds
//! a lock of the directory as long as it lives: what a killed one has left is judged by whether it lives.

use std::path::{Path, PathBuf};

use forebay_host::process::{self, Identity, Liveness, ProcessRef};
use forebay_host::{files, system, users};
use forebay_record::{RUN_VARIABLE, Record};
use forebay_store::persistent::Persistent;
use serde::{Deserialize, Serialize};

use crate::error::Result;

/// One job's use of an allocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Use {
    /// Id of the job: the scheduler's, where there is one.
    pub job_id: String,
    /// Forebay's own id of it, which `forebay clean` takes.
    pub run_id: String,
    /// The script as named.
    pub script: String,
    /// Name of the user.
    pub user: String,
    /// When it began, in seconds since 1970.
    pub began_unix_s: u64,
    /// The process that runs it.
    #[serde(flatten)]
    pub runner: ProcessRef,
    /// Something is to be staged out of it.
    pub stages_out: bool,
    /// A program asked for the stage-out. Only the job's own allocation has its request.
    #[serde(default)]
    is_asked: bool,
    /// Processes that could not be ended: another user's, whose environment does not name the job.
    #[serde(default)]
    remaining: Vec<Identity>,
    job_directory: PathBuf,
}

/// What is the matter with a job that uses an allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UseState {
    /// Its `forebay run` is alive.
    Running,
    /// Its `forebay run` was killed, and these processes of it are alive.
    Processes(Vec<i32>),
    /// It is over: killed, or not all of its data have arrived.
    Left,
    /// Only its own machine or container knows.
    Elsewhere,
}

/// All that is known of who uses an allocation.
#[derive(Debug, Default)]
pub struct Uses {
    /// Oldest first.
    pub found: Vec<(Use, UseState)>,
    /// What cannot be read, with the reason.
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

    /// The file in which it is written down.
    pub(crate) fn file(record: &Record, uses: &Path) -> PathBuf {
        uses.join(format!(
            "{}-{}@{}.json",
            record.id, record.runner.process.pid, record.runner.host
        ))
    }

    /// Writes it down.
    pub(crate) fn write(&self, file: &Path) -> forebay_host::Result<()> {
        files::write_json(file, &file.with_extension("fresh"), self)?;
        files::set_mode(file, 0o644) // the allocation's owner reads it
    }

    /// Changes what is written down: something is to be staged out of it.
    pub(crate) fn set_stages_out(file: &Path) -> forebay_host::Result<()> {
        let mut written = files::read_json::<Self>(file)?;
        written.stages_out = true;
        written.is_asked = true;
        written.write(file)
    }

    /// Changes what is written down: these processes go on.
    pub(crate) fn set_survivors(file: &Path, processes: &[i32]) -> forebay_host::Result<()> {
        let mut written = files::read_json::<Self>(file)?;
        let alive = processes.iter().filter_map(|pid| Identity::of(*pid).ok()); // or it has ended since
        written.remaining = alive.collect();
        written.write(file)
    }

    /// Those that still do.
    pub(crate) fn remaining(&self) -> impl Iterator<Item = i32> {
        let alive = self.remaining.iter().filter(|process| process.is_alive());
        alive.map(|process| process.pid)
    }

    /// The use in this file, unless that is gone.
    pub(crate) fn found(file: &Path) -> forebay_host::Result<Option<Self>> {
        match files::read_json::<Self>(file) {
            Err(error) if error.is_not_found() => Ok(None),
            read => read.map(Some),
        }
    }

    /// Did a program ask for something to be staged out of it?
    pub(crate) fn has_requests(&self) -> bool {
        self.is_asked
    }

    fn state(&self) -> forebay_host::Result<UseState> {
        match self.runner.liveness()? {
            Liveness::Alive => return Ok(UseState::Running),
            Liveness::Unknown => return Ok(UseState::Elsewhere),
            // Nothing that ran before the machine was started is alive.
            Liveness::Gone if !self.runner.is_of_this_boot()? => return Ok(UseState::Left),
            Liveness::Gone => {}
        }
        let run = self.job_directory.as_os_str();
        let mut processes = match process::with_env(RUN_VARIABLE, run, self.runner.process) {
            Err(error) if error.is_denied() => return Ok(UseState::Elsewhere),
            processes => processes?,
        };
        processes.extend(self.remaining());
        processes.sort_unstable();
        processes.dedup();
        Ok(match processes.is_empty() {
            true => UseState::Left,
            false => UseState::Processes(processes),
        })
    }
}

impl Uses {
    /// Who uses an allocation; nobody that we know of where we may not look.
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
                continue; // one that is being written, or was when its job was killed
            }
            match Use::found(&path) {
                Ok(None) => {} // the job has just ended
                Ok(Some(found)) => {
                    let state = found.state()?;
                    uses.found.push((found, state));
                }
                Err(error) => uses.unreadable.push(error.to_string()),
            }
        }
        Ok(uses)
    }

    /// Those that are in such a state.
    pub(crate) fn matching(&self, is_wanted: impl Fn(&UseState) -> bool) -> Vec<String> {
        let wanted = self.found.iter().filter(|(_, state)| is_wanted(state));
        wanted.map(|(one, _)| one.to_string()).collect()
    }
}
