//! Lists recorded jobs and commands.
//! Never believes a record of another user. A damaged record is listed with its reason, and is no error.

use std::path::{Path, PathBuf};

use forebay_host::{files, state, users};
use serde::Deserialize;
use serde_json::Value;

use crate::ids::{PROFILES, ids};
use crate::job_file::{self, Kind};

/// A recorded job or command, as its `job.json` describes it.
#[derive(Debug)]
pub struct PastJob {
    /// Forebay's id.
    pub id: String,
    /// Job or command.
    pub kind: Kind,
    /// Path of the script, or the name of the command.
    pub script: String,
    /// The host that ran it.
    pub host: String,
    /// Start time, in seconds since 1970.
    pub started_unix_s: f64,
    /// End time; none if it runs, or was killed.
    pub ended_unix_s: Option<f64>,
    /// True if it may still run, as far as this machine knows.
    pub may_run: bool,
    /// Exit status of the script or command; none if it was not started, was killed, or runs.
    pub job_status: Option<i32>,
    /// True if it was not started.
    pub is_refused: bool,
    /// Capacity of its allocation; none without one.
    pub capacity_bytes: Option<u64>,
    /// The nodes of its allocation, as the outcome describes them; none if it was on one node.
    pub nodes: Option<Value>,
    /// The directory of the record.
    pub profile: PathBuf,
}

/// Recorded jobs and commands, and unreadable records with the reason.
#[derive(Debug, Default)]
pub struct History {
    /// Newest first.
    pub found: Vec<PastJob>,
    /// Unreadable records, with the reason.
    pub unreadable: Vec<(PathBuf, String)>,
}

#[derive(Deserialize)]
struct Described {
    id: String,
    #[serde(default)]
    kind: Kind,
    name: String,
    script: Option<String>,
    host: String,
    started_unix_s: f64,
    ended_unix_s: Option<f64>,
    outcome: Option<Outcome>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Outcome {
    job_status: Option<i32>,
    store: Option<Store>,
    #[serde(default)]
    nodes: Option<Value>,
}

#[derive(Deserialize)]
struct Store {
    capacity_bytes: u64,
}

/// The newest records of this user in each state directory, at most `count_max` of each.
pub fn history(count_max: usize) -> History {
    let mut history = History::default();
    for directory in state::directories() {
        let profiles = directory.join(PROFILES);
        for id in ids(&profiles).into_iter().rev().take(count_max) {
            let directory = profiles.join(id.to_string());
            match past_job(&directory, &id.to_string()) {
                Ok(job) => history.found.push(job),
                Err(reason) => history.unreadable.push((directory, reason)),
            }
        }
    }
    history.found.sort_by(|a, b| b.started_unix_s.total_cmp(&a.started_unix_s));
    history
}

fn past_job(directory: &Path, id: &str) -> Result<PastJob, String> {
    // Another user's file says nothing about jobs of this user.
    let text = files::read_record(&directory.join(job_file::NAME), Some(users::user_id()))
        .map_err(|error| error.to_string())?;
    let job: Described = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    if job.id != id {
        return Err(format!("it is the record of {:?}", job.id));
    }
    let outcome = job.outcome.as_ref();
    Ok(PastJob {
        id: job.id,
        kind: job.kind,
        script: job.script.unwrap_or(job.name),
        host: job.host,
        started_unix_s: job.started_unix_s,
        ended_unix_s: job.ended_unix_s,
        may_run: job_file::may_run(directory).map_err(|error| error.to_string())?,
        job_status: outcome.and_then(|outcome| outcome.job_status),
        is_refused: job.error.is_some(),
        capacity_bytes: outcome.and_then(|outcome| Some(outcome.store.as_ref()?.capacity_bytes)),
        nodes: outcome.and_then(|outcome| outcome.nodes.clone()),
        profile: directory.to_owned(),
    })
}
