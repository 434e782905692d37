//! `forebay stage`: stages files in and out, in a job or by hand.
//! Assumes that another process can run the same staging: the lock of its journal decides. Never replaces a destination
//! that others changed, unless the user requests it.

mod arguments;
pub mod job_staging;
mod selection;
mod store;
mod transfer_list;

use std::path::PathBuf;
use std::time::Duration;

use comfy_table::{Table, presets};
use forebay_host::exit_codes::STAGE_OUT_INCOMPLETE;
use forebay_host::messages::FAILURES_SHOWN;
use forebay_host::messages::counted;
use forebay_host::process::{self, SignalGuard};
use forebay_host::{clock, system};
use forebay_mover::{CopyEvent, Error, Findings, KeepChanged, Plan, Transfer, carry_out};
use forebay_staging::{StagingProgress, StagingSummary};
use forebay_terminal::{
    CliError, Progress, print_error, print_error_line, print_hint, print_json, print_status,
    print_stdout,
};
use indicatif::HumanBytes;

use crate::job_id::resolve_job;
pub use arguments::StageArguments;
use arguments::{List, MoveArguments, OutArguments, Retry, SelectionArguments, StageVerb};
use forebay_recovery::JobState;
use job_staging::{End, POLL_INTERVAL};
pub use selection::Entry;
use selection::{Selection, journal_vanished, not_found, open_by_id, resolve, resolve_all, select};
pub use store::StagingStatus;
use store::{StagingRecord, StagingRequest, with_id};

/// Timeout for a background process to lock the journal of its staging, or to release it.
const HANDOVER_TIMEOUT: Duration = Duration::from_secs(10);

pub fn stage(arguments: &StageArguments) -> i32 {
    let (done, as_json) = match &arguments.verb {
        StageVerb::In(how) => (start(how, false), how.json),
        StageVerb::Out(how) => (start_out(how), how.what.json),
        StageVerb::Status(which) => (status(which), which.json),
        StageVerb::Wait(which) => (wait(which), which.json),
        StageVerb::Cancel(one) => (resolve(&one.id).and_then(|id| cancel(&id, one.json)), one.json),
        StageVerb::Forget(one) => (resolve(&one.id).and_then(|id| forget(&id, one.json)), one.json),
        StageVerb::Retry(retry) => (self::retry(retry), retry.json),
        StageVerb::List(list) => (self::list(list), list.json),
        StageVerb::CarryOut { id, keep_changed, keep_newer } => {
            (carry_out_in_background(id, *keep_changed, *keep_newer), false)
        }
    };
    match done {
        Ok(code) => code,
        Err(error) => error.print_with_json(as_json, None),
    }
}

fn start_out(arguments: &OutArguments) -> Result<i32, CliError> {
    let mut what = arguments.what.clone();
    if let Some((job, source)) = arguments.job.as_ref().zip(what.source.as_ref()) {
        let job = resolve_job(job, |job, state| {
            job.record.place.is_some()
                && !matches!(state, JobState::OtherHost | JobState::AllocationLost)
        })?;
        what.source = Some(job_staging::path_in(&job, source)?);
    }
    start(&what, true)
}

fn start(arguments: &MoveArguments, is_out: bool) -> Result<i32, CliError> {
    let transfers = transfer_list::transfers(arguments)?;
    let named = |path: Option<&PathBuf>| {
        path.map_or_else(String::new, |path| path.to_string_lossy().into_owned())
    };
    let source = arguments.list.as_ref().or(arguments.source.as_ref());
    let request = StagingRequest {
        is_out,
        source: named(source),
        target: named(arguments.target.as_ref()),
        how: arguments.how.clone(),
        began_unix_ms: u64::try_from(clock::unix_milliseconds()).unwrap_or_default(),
    };
    // Signals are caught before anything exists that a signal could leave behind.
    let events = SignalGuard::listen()?.watch(None)?;
    let stops = events.stops();
    let (staging, running) = StagingRecord::begin(request, &transfers)?;
    let progress = Progress::default();
    let is_stopped = || stops.count() > 0;
    let findings = match plan(&staging, &transfers, &progress, &is_stopped) {
        Ok(findings) => findings,
        Err(error) if staging.journal.is_cancelled()? => {
            let hint = format!("to resume: forebay stage retry {}", staging.id);
            return Err(CliError::new(error.to_string()).with_hint(hint));
        }
        Err(error) => {
            staging.forget()?;
            return Err(error.into());
        }
    };
    drop(running);
    if arguments.background {
        return start_in_background(staging, None, arguments.json);
    }
    finish(staging, findings, None, &progress, &is_stopped, arguments.json)
}

fn plan(
    staging: &StagingRecord,
    transfers: &[Transfer],
    progress: &Progress,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Findings, Error> {
    let on_planned = |number| {
        progress.found(number);
        !is_stopped()
    };
    let plan = Plan::begin(&staging.journal, &on_planned)?;
    for transfer in transfers {
        plan.add(transfer)?;
    }
    plan.end()
}

/// Carries out the staging. Removes its record if it is completed.
fn finish(
    staging: StagingRecord,
    findings: Findings,
    keep_changed: Option<KeepChanged>,
    progress: &Progress,
    is_stopped: &(dyn Fn() -> bool + Sync),
    as_json: bool,
) -> Result<i32, CliError> {
    let (id, direction) = (staging.id.clone(), staging.request.direction());
    let open = staging.journal.counts()?.open();
    progress.staging(direction, open.files, open.bytes);
    let on = |did| match did {
        CopyEvent::Bytes(bytes) | CopyEvent::Skipped(bytes) => progress.moved(bytes),
        CopyEvent::Reread(_) => {}
        CopyEvent::File => progress.arrived(direction),
    };
    let options = staging.request.options(&id, keep_changed);
    let moved = carry_out(&staging.journal, findings, &options, &on, is_stopped)?;
    let seconds = staging.began.elapsed().as_secs_f64();
    let staged = StagingSummary::new(&moved, &staging.journal, seconds);
    progress.staged(direction, &staged);
    let shown = staging.shown(if as_json { usize::MAX >> 1 } else { FAILURES_SHOWN })?;
    let is_complete = moved.counts.is_complete();
    print_notes(&shown);
    if is_complete {
        staging.forget()?;
    } else {
        print_failures(&shown);
        let StagingStatus { missing_files, missing_bytes, open_directories, .. } = shown;
        let bytes = HumanBytes(missing_bytes);
        let why = if moved.is_stopped { "staging was stopped: " } else { "" };
        let message = if missing_files == 0 && open_directories > 0 {
            format!("{why}{open_directories} directories are not finished")
        } else if missing_files == 0 {
            format!("{why}not everything could be staged")
        } else {
            format!("{why}not arrived: {}, {bytes}", counted(missing_files, "file"))
        };
        let advice = if moved.is_stopped { "to resume" } else { "correct the cause, then" };
        let hint = format!("{advice}: forebay stage retry {id}");
        print_error(&message, Some(&hint), STAGE_OUT_INCOMPLETE);
    }
    let code = if is_complete { 0 } else { STAGE_OUT_INCOMPLETE };
    Ok(if as_json { print_json(&shown, code) } else { code })
}

fn print_notes(shown: &StagingStatus) {
    for (text, count, example) in &shown.notes {
        print_status(&format!("note: {text}: {count} times, first {example}"));
    }
}

fn print_failures(shown: &StagingStatus) {
    for failure in shown.failures.iter().take(FAILURES_SHOWN) {
        print_error_line(&format!("{}: {}", failure.path, failure.reason));
        if let Some(remedy) = &failure.remedy {
            print_hint(remedy);
        }
    }
    let more = shown.failed.saturating_sub(FAILURES_SHOWN as u64);
    if more > 0 {
        print_error_line(&format!("and {more} more: forebay stage list --failed {}", shown.id));
    }
    for shortage in &shown.shortages {
        print_error_line(&shortage.to_string());
    }
}

/// Hands it to a process of its own.
fn start_in_background(
    staging: StagingRecord,
    keep_changed: Option<KeepChanged>,
    as_json: bool,
) -> Result<i32, CliError> {
    use std::process::Stdio;
    let id = staging.id.clone();
    let mut same = process::command(system::this_program()?);
    same.args(["stage", "__carry-out", &id]);
    if let Some(KeepChanged { newer_only, .. }) = keep_changed {
        same.arg(if newer_only { "--keep-newer" } else { "--keep-changed" });
    }
    same.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child =
        same.spawn().map_err(|error| CliError::new(format!("cannot start ourselves: {error}")))?;
    let began = clock::now();
    // The process may have ended before it is seen running.
    while !staging.journal.is_running()? && began.elapsed() < HANDOVER_TIMEOUT {
        let ended = child.try_wait().map_err(|error| CliError::new(error.to_string()))?;
        if ended.is_some() {
            break;
        }
        clock::sleep(POLL_INTERVAL);
    }
    if as_json {
        return Ok(print_json(&staging.shown(FAILURES_SHOWN)?, 0));
    }
    Ok(print_stdout(&id, 0))
}

fn carry_out_in_background(id: &str, changed: bool, newer: bool) -> Result<i32, CliError> {
    process::leave_session();
    let events = SignalGuard::listen()?.watch(None)?;
    let stops = events.stops();
    let staging = open_by_id(id)?;
    let keep_changed = staging.request.keep_changed(newer).filter(|_| changed || newer);
    let options = staging.request.options(id, keep_changed);
    let findings = Findings::default(); // another process planned it
    let moved = carry_out(&staging.journal, findings, &options, &|_| {}, &|| stops.count() > 0)?;
    store::prune_finished()?; // deferred to here, where the user does not wait for it
    Ok(if moved.counts.is_complete() { 0 } else { STAGE_OUT_INCOMPLETE })
}

fn status(which: &SelectionArguments) -> Result<i32, CliError> {
    let chosen = select(&resolve_all(&which.ids)?, FAILURES_SHOWN)?;
    if which.json {
        return Ok(chosen.json(chosen.code()));
    }
    Ok(print_stdout(&table(&chosen.shown), chosen.code()))
}

fn table(shown: &[StagingStatus]) -> String {
    if shown.is_empty() {
        return "no stagings".to_owned();
    }
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header([
        "staging", "", "state", "files", "bytes", "rate", "left", "failed", "from", "to",
    ]);
    for one in shown {
        let copied = match one.state {
            "running" => one.copied_bytes,
            _ => one.placed_bytes,
        };
        let bytes = (HumanBytes(copied), HumanBytes(one.bytes));
        let rate = one.bytes_per_s.map(|rate| format!("{}/s", HumanBytes(rate)));
        let left = one.remaining_s.map(|seconds| format!("{seconds} s"));
        table.add_row([
            one.id.clone(),
            one.direction.to_owned(),
            one.state.to_owned(),
            format!("{} of {}", one.placed_files, one.files),
            format!("{} of {}", bytes.0, bytes.1),
            rate.unwrap_or_default(),
            left.unwrap_or_default(),
            one.failed.to_string(),
            one.source.clone(),
            one.target.clone(),
        ]);
    }
    table.trim_fmt()
}

fn wait(which: &SelectionArguments) -> Result<i32, CliError> {
    let (mut chosen, mut not_begun) = (Selection::default(), Vec::new());
    let ids = resolve_all(&which.ids)?;
    for id in &ids {
        let job = match with_id(id)? {
            Some(_) => None,
            None => job_staging::with_id(id)?,
        };
        match job.map(job_staging::wait_for_end).transpose()? {
            None | Some(End::Left) => chosen.add(open_by_id(id)?, FAILURES_SHOWN)?,
            Some(End::NotBegun) => not_begun.push(id),
            Some(End::Arrived) => {}
        }
    }
    if which.ids.is_empty() {
        chosen = selection::select(&[], FAILURES_SHOWN)?;
    }
    for (place, staging) in std::mem::take(&mut chosen.running) {
        while staging.journal.is_running()? {
            clock::sleep(POLL_INTERVAL);
        }
        chosen.shown[place] = staging.shown(FAILURES_SHOWN)?;
    }
    let mut left = chosen.shown.iter().filter(|one| one.state != "done").peekable();
    let is_done = not_begun.is_empty() && left.peek().is_none();
    let code = match chosen.code() {
        0 if !is_done => STAGE_OUT_INCOMPLETE,
        code => code,
    };
    for id in not_begun {
        let message = format!("job {id} ended before its script began");
        print_error(&message, Some("its forebay run has said why"), code);
    }
    if which.json {
        return Ok(chosen.json(code));
    }
    for one in left {
        print_failures(one);
        let hint = format!("forebay stage retry {}", one.id);
        print_error(&format!("staging {} is {}", one.id, one.state), Some(&hint), code);
    }
    Ok(code)
}

fn cancel(id: &str, as_json: bool) -> Result<i32, CliError> {
    let staging = open_by_id(id)?;
    if journal_vanished(staging.journal.path()) {
        if job_staging::with_id(id)?.is_none() {
            return Err(not_found(id));
        }
        // For a job in a view the opened journal is a copy, and its owner would not see a cancellation.
        return Err(CliError::new(format!(
            "staging {id} keeps its journal in its job's view, where it cannot be told to stop"
        ))
        .with_hint("send SIGTERM to its forebay run; forebay clean then stages out the rest"));
    }
    staging.journal.cancel()?;
    wait_until_stopped(&staging)?;
    let shown = staging.shown(FAILURES_SHOWN)?;
    if as_json {
        return Ok(print_json(&shown, 0));
    }
    print_notes(&shown);
    let text = match shown.state {
        "done" => format!("staging {id} was done already"),
        _ => format!(
            "staging {id} is stopped: {} arrived, {} did not; forebay stage retry {id} goes on",
            counted(shown.placed_files, "file"),
            shown.missing_files
        ),
    };
    print_status(&text);
    Ok(0)
}

/// Waits until no process carries out the staging, and removes partial files of a killed one.
fn wait_until_stopped(staging: &StagingRecord) -> Result<(), CliError> {
    let StagingRecord { id, journal, .. } = staging;
    let began = clock::now();
    loop {
        if !journal.is_running()? {
            if journal_vanished(journal.path()) {
                return Ok(()); // completed before it saw the cancellation
            }
            match forebay_mover::discard_partial(journal, id) {
                Err(Error::Locked(_)) => {} // a process just started and will see the cancellation
                taken => return Ok(taken?),
            }
        }
        if began.elapsed() > HANDOVER_TIMEOUT {
            return Err(CliError::new(format!(
                "staging {id} was asked to stop and is still running"
            ))
            .with_hint("its file system may not answer; forebay stage status tells"));
        }
        clock::sleep(POLL_INTERVAL);
    }
}

fn forget(id: &str, as_json: bool) -> Result<i32, CliError> {
    if with_id(id)?.is_none() && job_staging::with_id(id)?.is_some() {
        let message = format!("{id} is a job: this command forgets only stagings started by hand");
        let hint =
            format!("forebay clean {id} stages out the remaining files and removes the allocation");
        return Err(CliError::new(message).with_hint(hint));
    }
    let staging = open_by_id(id)?;
    let refused = |error| match error {
        Error::Locked(_) => CliError::new(format!("staging {id} is running"))
            .with_hint(format!("cancel it first: forebay stage cancel {id}")),
        error => error.into(),
    };
    forebay_mover::discard_partial(&staging.journal, id).map_err(refused)?;
    let shown = staging.shown(FAILURES_SHOWN)?;
    let _lock = staging.journal.lock().map_err(refused)?;
    staging.forget()?;
    if as_json {
        return Ok(print_json(&shown, 0));
    }
    let (arrived, missing) = (counted(shown.placed_files, "file"), shown.missing_files);
    print_notes(&shown);
    print_status(&format!("staging {id} is forgotten: {arrived} arrived, {missing} did not"));
    Ok(0)
}

fn retry(retry: &Retry) -> Result<i32, CliError> {
    let id = &resolve(&retry.id)?;
    if retry.overwrite_newer && *id != retry.id {
        let message = format!("--overwrite-newer needs the whole id, not {}", retry.id);
        let hint = format!("forebay stage retry --overwrite-newer {id}");
        return Err(CliError::new(message).with_hint(hint));
    }
    if with_id(id)?.is_none() && job_staging::with_id(id)?.is_some() {
        if retry.background {
            // Its data may be in the job's view, whose allocation has to be removed afterwards.
            return Err(CliError::new(format!(
                "{id} is a job: its remaining files are not staged in the background"
            ))
            .with_hint(format!(
                "forebay stage retry {id} waits for its end, as forebay clean {id}"
            )));
        }
        if *id != retry.id {
            crate::clean::refuse_to_delete(id)?;
        }
        return Ok(crate::clean::clean_by_id(id, retry.overwrite_newer, retry.json));
    }
    let staging = open_by_id(id)?;
    let events = SignalGuard::listen()?.watch(None)?;
    let stops = events.stops();
    // A plan that is made again may have a later version of what this staging has copied.
    let newer_only = staging.journal.plans_again()?;
    let keep_changed = staging.request.keep_changed(newer_only).filter(|_| !retry.overwrite_newer);
    let findings = {
        let _lock = staging.journal.lock()?;
        forebay_mover::retry(&staging.journal, &|_| stops.count() == 0)?
    };
    if retry.background {
        return start_in_background(staging, keep_changed, retry.json);
    }
    let is_stopped = || stops.count() > 0;
    finish(staging, findings, keep_changed, &Progress::default(), &is_stopped, retry.json)
}

fn list(list: &List) -> Result<i32, CliError> {
    let failures = if list.failed { usize::MAX >> 1 } else { FAILURES_SHOWN };
    let chosen = select(&resolve_all(&list.ids)?, failures)?;
    let code = chosen.code();
    if list.json {
        return Ok(chosen.json(code));
    }
    if !list.failed {
        return Ok(print_stdout(&table(&chosen.shown), code));
    }
    let failures = chosen.shown.iter().flat_map(|one| &one.failures);
    let lines = failures.map(|failure| {
        let remedy =
            failure.remedy.as_ref().map_or_else(String::new, |remedy| format!("\n  {remedy}"));
        format!("{}: {}{remedy}", failure.path, failure.reason)
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    Ok(print_stdout(if text.is_empty() { "nothing failed" } else { &text }, code))
}
