//! `forebay clean`.
//! Assumes the records of `forebay run`. `forebay-recovery` does the work. Without --discard, never removes
//! a job whose stage-out failed.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::Args;
use forebay_directive::AccessMode;
use forebay_engine::{NodesSummary, NodesUse};
use forebay_host::exit_codes::{FAILED, STAGE_OUT_INCOMPLETE};
use forebay_host::messages::counted;
use forebay_host::process::{SignalGuard, command};
use forebay_host::{files, system};
use forebay_job::{Error, complete_profiles};
use forebay_mover::{ALREADY_EXISTS, Failure, Number};
use forebay_record::{RecordFile, id_of, records};
use forebay_recovery as recovery;
use forebay_recovery::{CleanOptions, JobState, remove_unrecorded};
use forebay_scheduler::NodeLauncher;
use forebay_staging::StagingSummary;
use forebay_terminal::{
    CliError, Progress, print_error, print_failures, print_incomplete, print_json, print_status,
    print_warning,
};
use indicatif::HumanBytes;
use schemars::JsonSchema;
use serde::Serialize;

use crate::emulation;
use crate::job_id::resolve_job;
use crate::options::staging::JobStagingArguments;
use crate::stage::job_staging::with_id;
use crate::status::warn_of_unreadable;

#[derive(Debug, Clone, Args)]
pub struct CleanArguments {
    /// Jobs to clean: id, part of an id, or last (the newest with leftovers) [default: all with leftovers on this machine, except jobs that were kept on request or stage
    /// nothing out]
    #[arg(value_name = "JOB")]
    pub jobs: Vec<String>,
    /// Delete without staging out
    #[arg(long)]
    pub discard: bool,
    /// Do not ask before --discard deletes; without a terminal Forebay never asks
    #[arg(long, requires = "discard")]
    pub yes: bool,
    /// End processes of the job that are still alive
    #[arg(long)]
    pub kill: bool,
    /// Also replace destinations that have changed since the job began
    #[arg(long)]
    pub overwrite_newer: bool,
    /// Copy all files of the allocation to DIR/striped and DIR/private instead of staging out; replaces no file
    #[arg(long, value_name = "DIR", requires = "jobs", conflicts_with = "discard")]
    pub to: Option<PathBuf>,
    /// Another way to start processes on the nodes of the job, for example ssh after the end of a Slurm job
    #[arg(long, value_name = "COMMAND", value_parser = NodeLauncher::parse)]
    pub launcher: Option<NodeLauncher>,
    #[command(flatten)]
    pub staging: JobStagingArguments,
    /// Print a JSON object for each job
    #[arg(long)]
    pub json: bool,
}

/// One job in the output of `--json`.
#[derive(Default, Serialize, JsonSchema)]
pub struct Cleaned<'a> {
    /// Forebay's id of the job.
    job_id: &'a str,
    /// True if the job and its leftovers were removed.
    removed: bool,
    /// True if results that were to be staged out were in memory, and are lost.
    results_lost: bool,
    /// The stage-out; null if nothing was to be staged out.
    stage_out: Option<&'a StagingSummary>,
    /// The files that were deleted with the allocation.
    deleted_files: Option<u64>,
    /// Their bytes.
    deleted_bytes: Option<u64>,
    /// Pending and failed files of a stage-out that were removed nevertheless.
    discarded_files: Option<u64>,
    /// Their bytes.
    discarded_bytes: Option<u64>,
    /// The nodes of its allocation and the engine over them; null if it was on one node.
    nodes: Option<NodesSummary>,
    /// Why the job was not cleaned.
    error: Option<String>,
}

/// Cleans this job, as `forebay clean JOB`.
pub fn clean_by_id(job: &str, overwrite_newer: bool, json: bool) -> i32 {
    clean(&CleanArguments {
        jobs: vec![job.to_owned()],
        discard: false,
        yes: false,
        kill: false,
        overwrite_newer,
        to: None,
        launcher: None,
        staging: JobStagingArguments::default(),
        json,
    })
}

pub fn clean(arguments: &CleanArguments) -> i32 {
    let jobs: Result<Vec<_>, _> =
        arguments.jobs.iter().map(|job| whole_id(job, arguments)).collect();
    let arguments = match jobs {
        Ok(jobs) => &CleanArguments { jobs, ..arguments.clone() },
        Err(error) => return error.print(),
    };
    // A view may have another working directory.
    let to = arguments.to.as_deref().map(std::path::absolute).transpose();
    let to = match to {
        Ok(to) => to,
        Err(error) => return print_error(&format!("--to: {error}"), None, FAILED),
    };
    let (chosen, unreadable) = match chosen(arguments) {
        Ok(chosen) => chosen,
        Err(error) => return print_error(&error.to_string(), error.hint().as_deref(), FAILED),
    };
    let unknown =
        arguments.jobs.iter().filter(|id| !chosen.iter().any(|job| job.record.id == **id));
    if arguments.discard && !arguments.yes && std::io::stdin().is_terminal() && !confirms(&chosen) {
        return print_error("nothing was deleted", Some("--yes deletes without asking"), FAILED);
    }
    let mut code = 0;
    for id in unknown {
        let record = unreadable.iter().find(|record| id_of(record) == Some(id));
        code = code.max(match record {
            Some(record) => clean_unreadable(id, record, arguments),
            None => print_error(
                &format!("there is no job {id}"),
                Some("forebay status lists them"),
                FAILED,
            ),
        });
    }
    if arguments.to.is_some() && arguments.jobs.len() > 1 {
        let hint = Some("name one job: the files of several would meet there");
        return print_error("--to takes the files of one job", hint, FAILED);
    }
    // Each job may lie in a view of its own, and a process enters one view only.
    if chosen.len() > 1 {
        let codes = chosen.iter().map(|job| in_its_own_process(job, arguments));
        return codes.fold(code, i32::max);
    }
    match chosen.into_iter().next() {
        Some(recorded) => clean_one(recorded, to, arguments).max(code),
        None => code,
    }
}

/// Forgets a job whose record cannot be read, with `--discard`.
fn clean_unreadable(id: &str, record: &Path, arguments: &CleanArguments) -> i32 {
    let done = match arguments.discard {
        true => recovery::forget_unreadable(record, arguments.kill)
            .map_err(|error| (error.to_string(), error.hint())),
        false => Err((
            format!("job {id}: its record {} cannot be read", files::printable(record)),
            Some(format!("forebay clean --discard {id} forgets the job and leaves its allocation")),
        )),
    };
    let code = match &done {
        Ok(()) => {
            print_status(&format!("job {id}: forgotten; its allocation was not removed"));
            0
        }
        Err((error, hint)) => print_error(error, hint.as_deref(), FAILED),
    };
    if !arguments.json {
        return code;
    }
    let error = done.err().map(|(error, _)| error);
    print_json(&Cleaned { job_id: id, error, ..Cleaned::default() }, code)
}

/// The id of the job that the user means. What cannot be undone needs the whole id.
fn whole_id(wanted: &str, arguments: &CleanArguments) -> Result<String, CliError> {
    let id = resolve_job(wanted, |job, state| {
        let is_left = matches!(state, JobState::Orphaned { .. } | JobState::Unreachable);
        *state == JobState::AllocationLost
            || is_left && (arguments.to.is_some() || !job.needs_user_decision())
    })?;
    if id == wanted {
        return Ok(id);
    }
    let flags = [
        ("--discard", arguments.discard),
        ("--kill", arguments.kill),
        ("--overwrite-newer", arguments.overwrite_newer),
    ];
    if let Some((flag, _)) = flags.into_iter().find(|(_, given)| *given) {
        let message = format!("{flag} needs the whole id of a job, not {wanted}");
        return Err(CliError::new(message).with_hint(format!("forebay clean {flag} {id}")));
    }
    if arguments.to.is_none() {
        refuse_to_delete(&id)?;
    }
    Ok(id)
}

/// Refuses a short id of a job that stages nothing out: cleaning it deletes its files.
///
/// # Errors
/// If this is such a job, or the records cannot be read.
pub fn refuse_to_delete(id: &str) -> Result<(), CliError> {
    let records = records().map_err(recovery::Error::from)?;
    if !records.found.iter().any(|job| job.record.id == id && job.needs_user_decision()) {
        return Ok(());
    }
    let message = format!("clean would delete the files of job {id}, which stages nothing out");
    let hint = format!("to delete them, write the whole id: forebay clean {id}");
    Err(CliError::new(message).with_hint(hint))
}

/// Says what would be deleted, and asks the user at the terminal.
fn confirms(chosen: &[RecordFile]) -> bool {
    for recorded in chosen {
        let Number { files, bytes } = held(recorded);
        let (id, files, bytes) = (&recorded.record.id, counted(files, "file"), HumanBytes(bytes));
        let data = forebay_host::files::printable(&recorded.data().unwrap_or_default());
        print_warning(&format!("job {id}: deletes {files}, {bytes}, in {data}"));
    }
    print_status("delete them? [y/N]");
    let mut answer = String::new();
    let answered = std::io::stdin().read_line(&mut answer).is_ok();
    answered && matches!(answer.trim(), "y" | "Y" | "yes")
}

/// The files in the job's namespaces.
fn held(recorded: &RecordFile) -> Number {
    let data = recorded.data().unwrap_or_default();
    let namespaces =
        [AccessMode::Striped, AccessMode::Private].map(|mode| data.join(mode.directory()));
    let sizes = namespaces.iter().map(|namespace| files::tree_size(namespace));
    let (files, bytes) = sizes.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    Number { files, bytes }
}

/// The named jobs, or all jobs with leftovers that may be removed; and the records that cannot be read.
fn chosen(arguments: &CleanArguments) -> Result<(Vec<RecordFile>, Vec<PathBuf>), Error> {
    let records = records()?;
    warn_of_unreadable(&records);
    if arguments.jobs.is_empty() {
        remove_unrecorded(&records)?;
        emulation::remove_abandoned(&records)?;
        if let Err(error) = complete_profiles(&records) {
            print_warning(&error.to_string());
        }
    }
    let mut chosen = Vec::new();
    for recorded in records.found {
        let id = &recorded.record.id;
        let wanted = if arguments.jobs.is_empty() {
            select_for_clean(&recorded, arguments.discard)?
        } else {
            arguments.jobs.contains(id)
        };
        if wanted {
            chosen.push(recorded);
        }
    }
    Ok((chosen, records.unreadable.into_iter().map(|(path, _)| path).collect()))
}

/// True if the job is cleaned without being named.
fn select_for_clean(recorded: &RecordFile, discard: bool) -> Result<bool, Error> {
    let id = &recorded.record.id;
    Ok(match recovery::state(recorded)? {
        JobState::AllocationLost => true,
        JobState::Orphaned { .. } if recorded.needs_user_decision() && !discard => {
            print_status(&format!(
                "job {id} is left alone, because it was kept or stages nothing out: forebay clean {id} removes it"
            ));
            false
        }
        JobState::Orphaned { .. } => true,
        JobState::Unreachable => {
            print_warning(&format!(
                "job {id}: its allocation is not there; is its file system mounted?"
            ));
            false
        }
        JobState::OtherHost if recorded.record.runner.host == system::hostname() => {
            print_warning(&format!(
                "job {id} is left alone: its processes cannot be looked at from this container or job"
            ));
            false
        }
        JobState::Running | JobState::OtherHost => false,
    })
}

fn in_its_own_process(recorded: &RecordFile, arguments: &CleanArguments) -> i32 {
    let flags = [
        ("--discard", arguments.discard),
        ("--yes", arguments.discard),
        ("--kill", arguments.kill),
        ("--overwrite-newer", arguments.overwrite_newer),
        ("--json", arguments.json),
    ];
    let flags = flags.into_iter().filter(|(_, given)| *given).map(|(flag, _)| flag);
    let ended = system::this_program().map(|program| {
        let mut same = command(program);
        same.arg("clean").args(flags).args(arguments.staging.to_args());
        if let Some(launcher) = &arguments.launcher {
            same.args(["--launcher", launcher.name()]);
        }
        same.arg(&recorded.record.id);
        same.status()
    });
    match ended {
        Ok(Ok(status)) => status.code().unwrap_or(1),
        Ok(Err(error)) => print_error(&format!("cannot start ourselves: {error}"), None, FAILED),
        Err(error) => print_error(&error.to_string(), None, FAILED),
    }
}

/// The command lines that start the agents of a job in another way.
fn agents_of(
    recorded: &RecordFile,
    launcher: Option<&NodeLauncher>,
) -> Result<Option<Vec<Vec<String>>>, String> {
    match (launcher, &recorded.record.nodes) {
        (Some(launcher), Some(nodes)) => launcher.on_all(&nodes.nodes, &nodes.commands).map(Some),
        _ => Ok(None),
    }
}

fn clean_one(recorded: RecordFile, to: Option<PathBuf>, arguments: &CleanArguments) -> i32 {
    let id = recorded.record.id.clone();
    let data_lie_in = recorded.data();
    let nodes = recorded.record.nodes.as_ref().map(NodesUse::summary);
    let agents = match agents_of(&recorded, arguments.launcher.as_ref()) {
        Ok(agents) => agents,
        Err(message) => return print_error(&format!("job {id}: {message}"), None, 1),
    };
    let how = CleanOptions {
        discard: arguments.discard,
        end_processes: arguments.kill,
        staging: arguments.staging.options_after(recorded.record.staging),
        overwrite_newer: arguments.overwrite_newer,
        to,
        agents,
    };
    // Without a stage-out there are no counts.
    let begun = how.discard.then(|| recorded.staged_out(0).ok().flatten());
    let missing = begun.flatten().map(|(account, _)| account.counts.missing());
    let missing = missing.filter(|missing| missing.files > 0);
    let held = how.discard.then(|| held(&recorded)).filter(|held| held.files > 0);
    let is_forgotten = matches!(recovery::state(&recorded), Ok(JobState::OtherHost));
    let caught = SignalGuard::listen().map_err(recovery::Error::from);
    let cleaned =
        caught.and_then(|caught| recovery::clean(recorded, &how, caught, &Progress::default()));
    let data = data_lie_in.unwrap_or_default();
    let code = match &cleaned {
        Err(error) => print_error(&format!("job {id}: {error}"), error.hint().as_deref(), FAILED),
        Ok(_) if is_forgotten => {
            let place = forebay_host::files::printable(&data);
            print_status(&format!(
                "job {id}: forgotten; nothing was removed, and its files may still be in {place}"
            ));
            0
        }
        Ok(cleaned) => print_cleaned(&id, &data, cleaned, held, missing),
    };
    if !arguments.json {
        return code;
    }
    let (cleaned, error) = match &cleaned {
        Ok(cleaned) => (Some(cleaned), None),
        Err(error) => (None, Some(error)),
    };
    let staged = cleaned.and_then(|cleaned| cleaned.stage_out.as_ref());
    let is_complete = staged.is_none_or(|staged| staged.failures.is_empty());
    let is_removed = error.is_none() && is_complete && !is_forgotten;
    let missing = missing.filter(|_| is_removed);
    let held = held.filter(|_| is_removed);
    let shown = Cleaned {
        job_id: &id,
        removed: is_removed,
        results_lost: cleaned.is_some_and(|cleaned| cleaned.results_lost),
        deleted_files: held.map(|held| held.files),
        deleted_bytes: held.map(|held| held.bytes),
        discarded_files: missing.map(|missing| missing.files),
        discarded_bytes: missing.map(|missing| missing.bytes),
        stage_out: staged,
        nodes,
        error: error.map(ToString::to_string),
    };
    print_json(&shown, code)
}

/// Prints what happened to a job. Returns the exit code.
fn print_cleaned(
    id: &str,
    data: &Path,
    cleaned: &recovery::CleanSummary,
    held: Option<Number>,
    missing: Option<Number>,
) -> i32 {
    let staged = cleaned.stage_out.as_ref();
    if staged.is_some_and(|staged| !staged.failures.is_empty()) {
        print_failures(staged);
        let message = format!("job {id}: not everything arrived; nothing was removed");
        // Another process may hold the view now.
        let now = with_id(id).ok().flatten().and_then(|job| job.data());
        let hint = hint_after_failures(id, now.as_deref().unwrap_or(data), staged);
        return print_error(&message, Some(&hint), STAGE_OUT_INCOMPLETE);
    }
    print_incomplete(staged);
    if cleaned.results_lost {
        let message = format!(
            "job {id}: its results are lost with the memory that held them; the rest of the job was removed"
        );
        return print_error(&message, Some("run the job again"), FAILED);
    }
    print_removed(id, held, missing);
    if staged.is_some_and(StagingSummary::is_incomplete) { STAGE_OUT_INCOMPLETE } else { 0 }
}

fn print_removed(id: &str, held: Option<Number>, missing: Option<Number>) {
    let amount =
        |number: Number| format!("{}, {}", counted(number.files, "file"), HumanBytes(number.bytes));
    let deleted = held.map_or_else(String::new, |held| format!(", and with it {}", amount(held)));
    let lost =
        missing.map_or_else(String::new, |lost| format!("; not staged out: {}", amount(lost)));
    print_status(&format!("job {id}: removed{deleted}{lost}"));
}

/// How to rescue the files that were not staged out.
fn hint_after_failures(id: &str, place: &Path, staged: Option<&StagingSummary>) -> String {
    let is_kept = |failure: &Failure| failure.errno == Some(ALREADY_EXISTS);
    let how = if staged.is_some_and(|staged| staged.failures.iter().any(is_kept)) {
        format!(
            "copy them elsewhere with forebay clean {id} --to DIR, or replace newer files with forebay clean {id} \
             --overwrite-newer"
        )
    } else {
        format!(
            "correct the cause and run forebay clean {id} again, or copy all files elsewhere with forebay clean {id} \
             --to DIR"
        )
    };
    format!(
        "the data are in {}; {how}; or give up the missing files: forebay clean {id} --discard deletes them with the \
         allocation",
        forebay_host::files::printable(place)
    )
}
