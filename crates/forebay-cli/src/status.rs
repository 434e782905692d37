//! `forebay status`.

use std::time::Duration;

use clap::Args;
use comfy_table::{Table, presets};
use forebay_host::clock;
use forebay_mover::{Failure, Shortage};
use forebay_record::{Phase, RecordFile, records};
use forebay_recovery as recovery;
use forebay_recovery::JobState;
use forebay_terminal::{print_error, print_hint, print_json, print_stdout, print_warning};
use indicatif::{HumanBytes, HumanDuration};
use serde::Serialize;

use crate::persistent;

#[derive(Debug, Args)]
pub struct StatusArguments {
    /// Print a JSON list
    #[arg(long)]
    pub json: bool,
}

/// Failures that are told of each job.
const FAILURES_SHOWN: usize = 5;

/// One job as `--json` shows it.
#[derive(Serialize)]
struct Shown {
    job_id: String,
    script: String,
    host: String,
    began_unix_s: u64,
    state: &'static str,
    phase: Phase,
    /// The job's processes that outlived its `forebay run`.
    processes: Vec<i32>,
    /// Is there something to be staged out yet?
    undrained: bool,
    /// Of a stage-out that was begun: what has not arrived; and the first failures, path and reason.
    missing_files: Option<u64>,
    missing_bytes: Option<u64>,
    failures: Vec<(String, String)>,
    /// File systems that had no room for it: what is needed there and what is free.
    shortages: Vec<Shortage>,
    /// Files that are in the allocation only, and the list of them; none if nothing was listed.
    not_safe_files: Option<u64>,
    not_safe_list: Option<String>,
    used_bytes: Option<u64>,
    capacity_bytes: Option<u64>,
    /// Where the data can be reached.
    data: Option<String>,
}

/// One line of `--json`: jobs as they were, persistent allocations beside them.
#[derive(Serialize)]
#[serde(untagged)]
enum Line<'a> {
    Job(&'a Shown),
    Persistent(&'a persistent::Shown),
}

pub fn status(arguments: &StatusArguments) -> i32 {
    // The jobs are told of all the same.
    let persistent = persistent::listed(None).unwrap_or_else(|error| {
        print_warning(&format!("persistent allocations cannot be listed: {error}"));
        Vec::new()
    });
    let shown = records()
        .map_err(recovery::Error::from)
        .and_then(|records| {
            for (path, reason) in &records.unreadable {
                print_warning(&format!("cannot read {}: {reason}", path.display()));
            }
            records
                .found
                .iter()
                .map(show)
                .collect::<Result<Vec<_>, _>>()
        });
    let shown = match shown {
        Ok(shown) => shown,
        Err(error) => return print_error(&error.to_string(), error.hint().as_deref(), 1),
    };
    if arguments.json {
        let persistent = persistent.iter().map(Line::Persistent);
        let lines: Vec<_> = shown.iter().map(Line::Job).chain(persistent).collect();
        return print_json(&lines, 0);
    }
    let mut text = if shown.is_empty() {
        "no jobs, nothing left behind".to_owned()
    } else {
        table(&shown)
    };
    if !persistent.is_empty() {
        text.push_str("\n\n");
        text.push_str(&persistent::table(&persistent));
    }
    let code = print_stdout(&text, 0);
    for job in &shown {
        for (path, reason) in &job.failures {
            print_warning(&format!(
                "job {}: not staged out: {path}: {reason}",
                job.job_id
            ));
        }
        for shortage in &job.shortages {
            print_warning(&format!("job {}: {shortage}", job.job_id));
        }
    }
    for job in &shown {
        if let (Some(files), Some(list)) = (job.not_safe_files, &job.not_safe_list) {
            print_warning(&format!(
                "job {}: {files} files are on {} only: {list}",
                job.job_id, job.host
            ));
        }
    }
    if shown
        .iter()
        .any(|job| ["left", "lost"].contains(&job.state))
    {
        print_hint("forebay clean stages out what is left and removes it");
    }
    code
}

fn show(recorded: &RecordFile) -> Result<Shown, recovery::Error> {
    let record = &recorded.record;
    let (state, processes) = match recovery::state(recorded)? {
        JobState::Running => ("running", Vec::new()),
        JobState::Left { processes } if record.phase == Phase::Kept && processes.is_empty() => {
            ("kept", processes)
        }
        JobState::Left { processes } => ("left", processes),
        JobState::Lost => ("lost", Vec::new()),
        JobState::Unreachable => ("unreachable", Vec::new()),
        JobState::Elsewhere => ("elsewhere", Vec::new()),
    };
    let not_safe_files = recorded.not_safe_files();
    let here = state != "lost" && state != "elsewhere";
    let begun = if here {
        recorded.staged_out(FAILURES_SHOWN)
    } else {
        Ok(None)
    };
    let begun = begun.unwrap_or_else(|error| {
        let job = &record.id;
        print_error(&format!("job {job}: {error}"), error.hint().as_deref(), 1);
        None
    });
    let missing = begun.as_ref().map(|(account, _)| account.counts.missing());
    let (shortages, failures) = begun.map_or_else(Default::default, |(account, failures)| {
        (account.shortages, failures)
    });
    let path = |failure: &Failure| failure.path.to_string_lossy().into_owned();
    Ok(Shown {
        job_id: record.id.clone(),
        script: record.script.clone(),
        host: record.runner.host.clone(),
        began_unix_s: record.began_unix_s,
        state,
        phase: record.phase,
        processes,
        undrained: state != "lost" && recorded.needs_stage_out(),
        missing_files: missing.map(|missing| missing.files),
        missing_bytes: missing.map(|missing| missing.bytes),
        failures: failures
            .into_iter()
            .map(|failure| (path(&failure), failure.reason))
            .collect(),
        shortages,
        not_safe_files,
        not_safe_list: not_safe_files
            .map(|_| recorded.not_safe_list().to_string_lossy().into_owned()),
        used_bytes: recorded
            .used_bytes()
            .filter(|_| here && state != "unreachable"),
        capacity_bytes: record.place.as_ref().map(|place| place.capacity_bytes),
        data: recorded
            .data()
            .filter(|_| here)
            .map(|path| path.to_string_lossy().into_owned()),
    })
}

fn table(shown: &[Shown]) -> String {
    let now = clock::unix_s();
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["job", "script", "began", "state", "used", "where"]);
    for job in shown {
        let age = Duration::from_secs(now.saturating_sub(job.began_unix_s));
        let bytes =
            |bytes: Option<u64>| bytes.map_or("-".to_owned(), |b| HumanBytes(b).to_string());
        let place = match job.state {
            "elsewhere" => format!("on {}", job.host),
            "lost" => "gone".to_owned(),
            _ => job.data.clone().unwrap_or_default(),
        };
        table.add_row([
            job.job_id.clone(),
            job.script.clone(),
            format!("{} ago", HumanDuration(age)),
            state(job),
            format!("{} of {}", bytes(job.used_bytes), bytes(job.capacity_bytes)),
            place,
        ]);
    }
    table.trim_fmt()
}

fn state(job: &Shown) -> String {
    let mut text = job.state.to_owned();
    if job.undrained && job.state != "running" {
        text.push_str(", undrained");
        if let (Some(files), Some(bytes)) = (job.missing_files, job.missing_bytes) {
            text.push_str(&format!(": {files} files, {} missing", HumanBytes(bytes)));
        }
    }
    if !job.processes.is_empty() {
        let pids: Vec<_> = job.processes.iter().map(ToString::to_string).collect();
        text.push_str(&format!(", alive: {}", pids.join(" ")));
    }
    text
}

/// Names what earlier jobs have left, before another one begins.
pub fn warn_of_leftovers() {
    let Ok(records) = records() else {
        return; // `forebay status` says what is the matter; this run is not the worse for it
    };
    for recorded in records.found {
        let record = &recorded.record;
        let (id, script) = (&record.id, &record.script);
        let kept_on_purpose = record.phase == Phase::Kept && !recorded.needs_stage_out();
        match recovery::state(&recorded) {
            Ok(JobState::Left { .. }) if !kept_on_purpose => print_warning(&format!(
                "job {id} ({script}) was killed or left data behind: see forebay status, forebay clean {id}"
            )),
            Ok(JobState::Lost) => print_warning(&format!(
                "the memory of job {id} ({script}) is gone, and what it held: forebay clean {id} removes the rest"
            )),
            _ => {}
        }
    }
}
