//! `forebay jobs`: the history of this user's jobs, from their records of I/O and the records of what exists now.
//! Assumes that an id begins with the start time of its job. Never changes a record.
//! Where both records have a job, the record of what exists now decides its state.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use comfy_table::{Table, presets};
use forebay_engine::NodesSummary;
use forebay_host::messages::counted;
use forebay_host::{clock, files};
use forebay_profile::{Kind, PastJob, history};
use forebay_record::{Phase, RecordFile, records};
use forebay_recovery::{self as recovery, JobReport, report};
use forebay_terminal::{CliError, print_json, print_stdout, print_warning};
use indicatif::{HumanBytes, HumanDuration};
use schemars::JsonSchema;
use serde::Serialize;

use crate::job_id::began_unix_ms;
use crate::status::warn_of_unreadable;

/// Latest plausible time, in seconds since 1970; a later one in a record is damage.
const UNIX_S_MAX: f64 = 1e11;

#[derive(Debug, Args)]
pub struct JobsArguments {
    /// Number of jobs to list
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// Print a JSON list
    #[arg(long)]
    pub json: bool,
}

/// One job in the list.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Job {
    /// Forebay's id of the job.
    job_id: String,
    /// `run`, or `profile` for a command.
    kind: Kind,
    /// The path of the script, or the command.
    script: String,
    /// Where it ran.
    host: String,
    /// Start time, in seconds since 1970.
    started_unix_s: u64,
    /// From start to end, with staging; for a running job until now. None if the end is not known.
    duration_s: Option<f64>,
    /// One of waiting, running, ended, not-started, not-staged-out, kept, killed, lost, unreachable and elsewhere.
    state: &'static str,
    /// Exit status of the script.
    job_status: Option<i32>,
    /// Files that are not at their destinations, if known.
    pending_files: Option<u64>,
    /// Capacity of its allocation.
    capacity_bytes: Option<u64>,
    /// The nodes of its allocation and the engine over them; null if it was on one node.
    nodes: Option<NodesSummary>,
    /// The directory of the record of I/O.
    profile: Option<String>,
    /// What to do, as a command or in words; none if nothing needs care.
    next: Option<String>,
}

pub fn jobs(arguments: &JobsArguments) -> i32 {
    match listed(arguments.limit as usize) {
        Ok(jobs) if arguments.json => print_json(&jobs, 0),
        Ok(jobs) if jobs.is_empty() => print_stdout("no jobs are recorded", 0),
        Ok(jobs) => print_stdout(&table(&jobs), 0),
        Err(error) => error.print_with_json(arguments.json, None),
    }
}

fn listed(limit: usize) -> Result<Vec<Job>, CliError> {
    let history = history(limit);
    for (path, reason) in &history.unreadable {
        print_warning(&format!("cannot read {}: {reason}", files::printable(path)));
    }
    let records = records().map_err(recovery::Error::from)?;
    warn_of_unreadable(&records);
    let mut all: BTreeMap<(u128, String), (Option<PastJob>, Option<RecordFile>)> = BTreeMap::new();
    let key = |id: &str| (began_unix_ms(id), id.to_owned());
    for past in history.found {
        let key = key(&past.id);
        all.entry(key).or_default().0 = Some(past);
    }
    for recorded in records.found {
        let key = key(&recorded.record.id);
        all.entry(key).or_default().1 = Some(recorded);
    }
    // Only those that are shown are looked at closely.
    let newest = all.into_values().rev().take(limit);
    let jobs = newest.map(|(past, recorded)| {
        let mut job = past.as_ref().map(of_history).unwrap_or_default();
        if let Some(recorded) = recorded {
            let now = report(&recorded)?;
            if let Some(error) = &now.journal_error {
                print_warning(&format!("job {}: {error}", now.job_id));
            }
            add_present(&mut job, &now);
        }
        Ok(job)
    });
    jobs.collect()
}

fn of_history(past: &PastJob) -> Job {
    let seconds = |time: f64| time.clamp(0.0, UNIX_S_MAX);
    let started_s = seconds(past.started_unix_s);
    let now_s = past.may_run.then(clock::unix_seconds);
    let state = match (past.may_run, past.is_refused, past.ended_unix_s) {
        (true, ..) => "running",
        (_, true, _) => "not-started",
        (.., Some(_)) => "ended",
        (.., None) => "killed",
    };
    let ask_why = state == "not-started" || past.job_status.is_some_and(|status| status != 0);
    Job {
        job_id: past.id.clone(),
        kind: past.kind,
        script: past.script.clone(),
        host: past.host.clone(),
        started_unix_s: started_s as u64,
        duration_s: past.ended_unix_s.or(now_s).map(|end| (seconds(end) - started_s).max(0.0)),
        state,
        job_status: past.job_status,
        capacity_bytes: past.capacity_bytes,
        // Of a later version it may be unreadable.
        nodes: past.nodes.clone().and_then(|nodes| serde_json::from_value(nodes).ok()),
        profile: Some(past.profile.to_string_lossy().into_owned()),
        next: ask_why.then(|| format!("forebay why {}", past.id)),
        ..Job::default()
    }
}

/// Adds what exists of the job now; that is newer than the record of I/O.
fn add_present(job: &mut Job, now: &JobReport) {
    let kill = if now.processes.is_empty() { "" } else { "--kill " };
    let clean = Some(format!("forebay clean {kill}{}", now.job_id));
    let (state, next) = match now.state {
        "running" if now.phase == Phase::Preparing => ("waiting", None),
        "kept" if now.undrained => ("not-staged-out", clean),
        "left" if now.phase == Phase::Kept && now.undrained => ("not-staged-out", clean),
        "left" if now.phase == Phase::Kept => ("kept", clean),
        "left" => ("killed", clean),
        "kept" | "lost" => (now.state, clean),
        "unreachable" => (now.state, Some("mount its file system, then forebay clean".to_owned())),
        "elsewhere" if now.undrained => {
            (now.state, Some(format!("forebay clean {} on {}", now.job_id, now.host)))
        }
        state => (state, None),
    };
    if job.job_id.is_empty() {
        job.job_id.clone_from(&now.job_id);
        job.script.clone_from(&now.script);
        job.host.clone_from(&now.host);
        job.started_unix_s = now.began_unix_s;
        let is_running = now.state == "running";
        job.duration_s =
            is_running.then(|| clock::unix_s().saturating_sub(now.began_unix_s) as f64);
    }
    if state == "killed" {
        job.duration_s = None;
    }
    job.state = state;
    job.next = next;
    job.pending_files = now
        .missing_files
        .or(now.unsaved_count)
        .filter(|_| state != "running" && state != "waiting");
    job.capacity_bytes = now.capacity_bytes.or(job.capacity_bytes);
    job.nodes = now.nodes.clone().or(job.nodes.take());
}

fn table(jobs: &[Job]) -> String {
    let now_s = clock::unix_s();
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["job", "script", "started", "duration", "state", "capacity", "next step"]);
    for job in jobs {
        let age = Duration::from_secs(now_s.saturating_sub(job.started_unix_s));
        let unknown = || "-".to_owned();
        table.add_row([
            job.job_id.clone(),
            Path::new(&job.script)
                .file_name()
                .map_or_else(unknown, |name| files::printable(Path::new(name))),
            format!("{} ago", HumanDuration(age)),
            job.duration_s.map_or_else(unknown, duration),
            state(job),
            capacity(job).unwrap_or_else(unknown),
            job.next.clone().unwrap_or_default(),
        ]);
    }
    table.trim_fmt()
}

fn capacity(job: &Job) -> Option<String> {
    let capacity = HumanBytes(job.capacity_bytes?).to_string();
    Some(match &job.nodes {
        Some(nodes) => format!("{capacity} on {}", nodes.names.join(",")),
        None => capacity,
    })
}

fn duration(seconds: f64) -> String {
    if seconds < 60.0 {
        return format!("{seconds:.2} s");
    }
    HumanDuration(Duration::from_secs_f64(seconds)).to_string()
}

fn state(job: &Job) -> String {
    let mut text = match (job.state, job.job_status) {
        ("ended", Some(status)) => format!("ended with status {status}"),
        (state, _) => state.replace('-', " "),
    };
    if let Some(files @ 1..) = job.pending_files {
        text.push_str(&format!(", {} pending", counted(files, "file")));
    }
    text
}
