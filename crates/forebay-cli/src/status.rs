//! `forebay status`: lists running jobs, leftovers of killed jobs and persistent allocations.
//! Also warns of leftovers before a job starts. Never changes a record or removes a file.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use comfy_table::{Table, presets};
use forebay_host::clock;
use forebay_host::exit_codes::FAILED;
use forebay_host::messages::counted;
use forebay_record::{Phase, Records, id_of, records};
use forebay_recovery::{self as recovery, JobReport, JobState, report};
use forebay_store::Allocation;
use forebay_terminal::{print_error, print_hint, print_json, print_stdout, print_warning};
use indicatif::{HumanBytes, HumanDuration};
use schemars::JsonSchema;
use serde::Serialize;

use crate::persistent;

#[derive(Debug, Args)]
pub struct StatusArguments {
    /// Print a JSON list
    #[arg(long)]
    pub json: bool,
}

/// One entry of `--json`: a job or a persistent allocation.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Line<'a> {
    Job(&'a JobReport),
    Persistent(&'a persistent::PersistentStatus),
}

pub fn status(arguments: &StatusArguments) -> i32 {
    // A failure here does not prevent the list of jobs.
    let persistent = persistent::listed(None).unwrap_or_else(|error| {
        print_warning(&format!("persistent allocations cannot be listed: {error}"));
        Vec::new()
    });
    let mut is_whole = true;
    let shown = records().map_err(recovery::Error::from).and_then(|records| {
        warn_of_unreadable(&records);
        is_whole = records.unreadable.is_empty();
        records.found.iter().map(report).collect::<Result<Vec<_>, _>>()
    });
    let shown = match shown {
        Ok(shown) => shown,
        Err(error) => return print_error(&error.to_string(), error.hint().as_deref(), FAILED),
    };
    for job in &shown {
        if let Some(error) = &job.journal_error {
            let job = &job.job_id;
            print_error(&format!("job {job}: {error}"), error.hint().as_deref(), FAILED);
        }
    }
    if arguments.json {
        let persistent = persistent.iter().map(Line::Persistent);
        let lines: Vec<_> = shown.iter().map(Line::Job).chain(persistent).collect();
        return print_json(&lines, 0);
    }
    let mut text = match (shown.is_empty(), is_whole) {
        (true, true) => "no jobs, nothing left behind".to_owned(),
        (true, false) => "no job whose record can be read".to_owned(),
        (false, _) => table(&shown),
    };
    if !persistent.is_empty() {
        text.push_str("\n\n");
        text.push_str(&persistent::table(&persistent));
    }
    for (job, nodes) in shown.iter().filter_map(|job| Some((job, job.nodes.as_ref()?))) {
        text.push_str(&format!("\njob {}: {}", job.job_id, nodes.text()));
    }
    let code = print_stdout(&text, 0);
    for job in &shown {
        for (path, reason) in &job.failures {
            print_warning(&format!("job {}: not staged out: {path}: {reason}", job.job_id));
        }
        for shortage in &job.shortages {
            print_warning(&format!("job {}: {shortage}", job.job_id));
        }
    }
    for job in &shown {
        if let (Some(files), Some(list)) = (job.unsaved_count, &job.unsaved_list) {
            print_warning(&format!(
                "job {}: on {} only: {}, named in {list}",
                job.job_id,
                job.host,
                counted(files, "file")
            ));
        }
    }
    if shown.iter().any(|job| job.state == "left") {
        print_hint("forebay clean stages out the remaining files and removes the allocations");
    } else if shown.iter().any(|job| job.state == "lost") {
        print_hint("what was in memory is lost; forebay clean removes the other files of the jobs");
    }
    code
}

fn table(shown: &[JobReport]) -> String {
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

fn state(job: &JobReport) -> String {
    let mut text = job.state.to_owned();
    if job.undrained && job.state != "running" {
        text.push_str(", not staged out");
        if let (Some(files @ 1..), Some(bytes)) = (job.missing_files, job.missing_bytes) {
            text.push_str(&format!(": {}, {} missing", counted(files, "file"), HumanBytes(bytes)));
        }
    }
    if !job.processes.is_empty() {
        let pids: Vec<_> = job.processes.iter().map(ToString::to_string).collect();
        text.push_str(&format!(", alive: {}", pids.join(" ")));
    }
    if job.ends_with_processes {
        text.push_str("; its memory ends with them unless forebay clean is run first");
    }
    text
}

/// Warns of unreadable records.
pub fn warn_of_unreadable(records: &Records) {
    for (path, reason) in &records.unreadable {
        print_warning(&format!("cannot read {}: {reason}", path.display()));
        if let Some(id) = id_of(path).filter(|id| !id.contains('.')) {
            let directory = Allocation::root_in(Path::new(""), id);
            let directory = directory.display();
            print_hint(&format!(
                "files of job {id} may be in {directory} of its store; forebay clean --discard {id} forgets the job"
            ));
        }
    }
}

/// Warns of leftovers of earlier jobs before a job starts.
pub fn warn_of_leftovers() {
    let Ok(records) = records() else {
        return; // `forebay status` reports the error; this run can proceed
    };
    for recorded in records.found {
        let record = &recorded.record;
        let (id, script) = (&record.id, &record.script);
        let kept_on_purpose = record.phase == Phase::Kept && !recorded.needs_stage_out();
        match recovery::state(&recorded) {
            Ok(JobState::Orphaned { .. }) if !kept_on_purpose => print_warning(&format!(
                "job {id} ({script}) {}: see forebay status, forebay clean {id}",
                match record.phase {
                    Phase::Kept => "has data that did not arrive at their destinations",
                    _ => "was killed before its end",
                }
            )),
            Ok(JobState::AllocationLost) => print_warning(&format!(
                "the memory of job {id} ({script}) is gone, and what it held: forebay clean {id} removes the rest"
            )),
            _ => {}
        }
    }
}
