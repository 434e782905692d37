//! `forebay stage`: files in and out, by whoever has them.

mod arguments;
mod chosen;
mod jobs;
mod kept;
mod words;

use std::path::{Path, PathBuf};
use std::time::Duration;

use comfy_table::{Table, presets};
use forebay_control::{STAGE_OUT_INCOMPLETE, Staged, StagingProgress, recovery};
use forebay_host::process::{self, Caught};
use forebay_host::{clock, machine};
use forebay_mover::{Did, Error, Transfer, carry_out};
use indicatif::HumanBytes;

pub use arguments::{JobStagingArguments, StageArguments};
use arguments::{List, MoveArguments, Retry, StageVerb, Which};
use chosen::{Chosen, chosen, found, is_gone, nothing};
use jobs::End;
use kept::{Order, Shown, Staging, with_id};

use crate::messages::{self, data, fail, hint, json, say};
use crate::progress::Progress;

/// Failures named one by one; `--json` and `list --failed` have all.
const FAILURES_SHOWN: usize = 10;
const STEP: Duration = Duration::from_millis(50);
/// Time that a process in the background has to take its staging in hand, or to let it go.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a command cannot go on: message and hint.
struct Refused(String, Option<String>);

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self(error.to_string(), error.hint())
    }
}

impl From<forebay_host::Error> for Refused {
    fn from(error: forebay_host::Error) -> Self {
        Self(error.to_string(), None)
    }
}

impl From<recovery::Error> for Refused {
    fn from(error: recovery::Error) -> Self {
        Self(error.to_string(), error.hint())
    }
}

pub fn stage(arguments: &StageArguments) -> i32 {
    let (done, as_json) = match &arguments.verb {
        StageVerb::In(how) => (begin(how, false), how.json),
        StageVerb::Out(how) => (begin(how, true), how.json),
        StageVerb::Status(which) => (status(which), which.json),
        StageVerb::Wait(which) => (wait(which), which.json),
        StageVerb::Cancel(one) => (cancel(&one.id, one.json), one.json),
        StageVerb::Forget(one) => (forget(&one.id, one.json), one.json),
        StageVerb::Retry(retry) => (again(retry), retry.json),
        StageVerb::List(list) => (listed(list), list.json),
        StageVerb::CarryOut { id } => (in_background(id), false),
    };
    match done {
        Ok(code) => code,
        Err(Refused(message, hint)) => {
            fail(&message, hint.as_deref(), 1);
            if as_json {
                return messages::refusal(&message, hint.as_deref(), None, 1);
            }
            1
        }
    }
}

fn begin(arguments: &MoveArguments, is_out: bool) -> Result<i32, Refused> {
    let transfers = words::transfers(arguments)?;
    let named = |path: Option<&PathBuf>| {
        path.map_or_else(String::new, |path| path.to_string_lossy().into_owned())
    };
    let source = arguments.list.as_ref().or(arguments.source.as_ref());
    let order = Order {
        is_out,
        source: named(source),
        target: named(arguments.target.as_ref()),
        how: arguments.how.clone(),
    };
    // Before there is anything that a signal could leave behind.
    let events = Caught::listen()?.watch(None);
    let stops = events.stops();
    let (staging, running) = Staging::begin(order, &transfers)?;
    let progress = Progress::default();
    let is_stopped = || stops.count() > 0;
    if let Err(error) = plan(&staging, &transfers, &progress, &is_stopped) {
        if staging.journal.is_cancelled()? {
            let hint = format!("go on with it: forebay stage retry {}", staging.id);
            return Err(Refused(error.to_string(), Some(hint)));
        }
        staging.forget()?;
        return Err(error.into());
    }
    drop(running);
    if arguments.background {
        return start(staging, arguments.json);
    }
    finish(staging, &progress, &is_stopped, arguments.json)
}

fn plan(
    staging: &Staging,
    transfers: &[Transfer],
    progress: &Progress,
    is_stopped: &dyn Fn() -> bool,
) -> Result<(), Error> {
    let journal = &staging.journal;
    journal.begin_plan()?;
    for transfer in transfers {
        journal.add_watched(transfer, &|number| {
            progress.found(number);
            !is_stopped()
        })?;
    }
    journal.end_plan()
}

/// Carries it out; one that is done is forgotten.
fn finish(
    staging: Staging,
    progress: &Progress,
    is_stopped: &(dyn Fn() -> bool + Sync),
    as_json: bool,
) -> Result<i32, Refused> {
    let (id, direction) = (staging.id.clone(), staging.order.direction());
    let open = staging.journal.counts()?.open();
    progress.staging(direction, open.files, open.bytes);
    let on = |did| match did {
        Did::Bytes(bytes) | Did::Passed(bytes) => progress.moved(bytes),
        Did::Again(_) => {}
        Did::File => progress.arrived(direction),
    };
    let options = staging.order.options(&id);
    let moved = carry_out(&staging.journal, &options, &on, is_stopped)?;
    let seconds = staging.began.elapsed().as_secs_f64();
    let staged = Staged::new(&moved, staging.journal.notes()?, seconds);
    progress.staged(direction, &staged);
    let shown = staging.shown(if as_json {
        usize::MAX >> 1
    } else {
        FAILURES_SHOWN
    })?;
    let is_complete = moved.counts.is_complete();
    tell_notes(&shown);
    if is_complete {
        staging.forget()?;
    } else {
        tell_failures(&shown);
        let Shown {
            missing_files,
            missing_bytes,
            open_directories,
            ..
        } = shown;
        let bytes = HumanBytes(missing_bytes);
        let why = if moved.is_stopped {
            "staging was stopped: "
        } else {
            ""
        };
        let message = if missing_files == 0 && open_directories > 0 {
            format!("{why}{open_directories} directories are not finished")
        } else if missing_files == 0 {
            format!("{why}not everything could be staged")
        } else {
            format!("{why}{missing_files} files of {bytes} have not arrived")
        };
        let mend = if moved.is_stopped {
            "go on with it"
        } else {
            "mend the cause, then"
        };
        let hint = format!("{mend}: forebay stage retry {id}");
        fail(&message, Some(&hint), STAGE_OUT_INCOMPLETE);
    }
    let code = if is_complete { 0 } else { STAGE_OUT_INCOMPLETE };
    Ok(if as_json { json(&shown, code) } else { code })
}

fn tell_notes(shown: &Shown) {
    for (text, count, example) in &shown.notes {
        say(&format!("note: {text}: {count} times, first {example}"));
    }
}

fn tell_failures(shown: &Shown) {
    for failure in shown.failures.iter().take(FAILURES_SHOWN) {
        messages::error(&format!("{}: {}", failure.path, failure.reason));
        if let Some(remedy) = &failure.remedy {
            hint(remedy);
        }
    }
    let more = shown.failed.saturating_sub(FAILURES_SHOWN as u64);
    if more > 0 {
        messages::error(&format!(
            "and {more} more: forebay stage list --failed {}",
            shown.id
        ));
    }
    for shortage in &shown.shortages {
        messages::error(&shortage.to_string());
    }
}

/// Hands it to a process of its own.
fn start(staging: Staging, as_json: bool) -> Result<i32, Refused> {
    use std::process::Stdio;
    let id = staging.id.clone();
    let mut same = process::command(machine::this_program()?);
    same.args(["stage", "__carry-out", &id]);
    same.stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = same
        .spawn()
        .map_err(|error| Refused(format!("cannot start ourselves: {error}"), None))?;
    let began = clock::now();
    // It may be done before we look.
    while !staging.journal.is_running()? && began.elapsed() < PATIENCE {
        let ended = child
            .try_wait()
            .map_err(|error| Refused(error.to_string(), None))?;
        if ended.is_some() {
            break;
        }
        clock::sleep(STEP);
    }
    if as_json {
        return Ok(json(&staging.shown(FAILURES_SHOWN)?, 0));
    }
    Ok(data(&id, 0))
}

fn in_background(id: &str) -> Result<i32, Refused> {
    process::leave_session();
    let events = Caught::listen()?.watch(None);
    let stops = events.stops();
    let staging = found(id)?;
    let options = staging.order.options(id);
    let moved = carry_out(&staging.journal, &options, &|_| {}, &|| stops.count() > 0)?;
    kept::forget_done()?; // here nobody waits for it
    Ok(if moved.counts.is_complete() {
        0
    } else {
        STAGE_OUT_INCOMPLETE
    })
}

fn status(which: &Which) -> Result<i32, Refused> {
    let chosen = chosen(&which.ids, FAILURES_SHOWN)?;
    if which.json {
        return Ok(chosen.json(chosen.code()));
    }
    Ok(data(&table(&chosen.shown), chosen.code()))
}

fn table(shown: &[Shown]) -> String {
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
        let rate = one
            .bytes_per_s
            .map(|rate| format!("{}/s", HumanBytes(rate)));
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

fn wait(which: &Which) -> Result<i32, Refused> {
    let (mut chosen, mut not_begun) = (Chosen::default(), Vec::new());
    for id in &which.ids {
        let job = match with_id(id)? {
            Some(_) => None,
            None => jobs::with_id(id)?,
        };
        match job.map(jobs::end_of).transpose()? {
            None | Some(End::Left) => chosen.add(found(id)?, FAILURES_SHOWN)?,
            Some(End::NotBegun) => not_begun.push(id),
            Some(End::Arrived) => {}
        }
    }
    if which.ids.is_empty() {
        chosen = chosen::chosen(&[], FAILURES_SHOWN)?;
    }
    for (place, staging) in std::mem::take(&mut chosen.running) {
        while staging.journal.is_running()? {
            clock::sleep(STEP);
        }
        chosen.shown[place] = staging.shown(FAILURES_SHOWN)?;
    }
    let mut left = chosen
        .shown
        .iter()
        .filter(|one| one.state != "done")
        .peekable();
    let is_done = not_begun.is_empty() && left.peek().is_none();
    let code = match chosen.code() {
        0 if !is_done => STAGE_OUT_INCOMPLETE,
        code => code,
    };
    for id in not_begun {
        let message = format!("job {id} ended before its script began");
        fail(&message, Some("its forebay run has said why"), code);
    }
    if which.json {
        return Ok(chosen.json(code));
    }
    for one in left {
        tell_failures(one);
        let hint = format!("forebay stage retry {}", one.id);
        fail(
            &format!("staging {} is {}", one.id, one.state),
            Some(&hint),
            code,
        );
    }
    Ok(code)
}

fn cancel(id: &str, as_json: bool) -> Result<i32, Refused> {
    let staging = found(id)?;
    if is_gone(staging.journal.path()) {
        if jobs::with_id(id)?.is_none() {
            return Err(nothing(id));
        }
        // What was opened is a copy: nobody would hear of it.
        return Err(Refused(
            format!(
                "staging {id} keeps its journal in its job's view, where it cannot be told to stop"
            ),
            Some("send SIGTERM to its forebay run; forebay clean goes on with it".to_owned()),
        ));
    }
    staging.journal.cancel()?;
    stopped(&staging)?;
    let shown = staging.shown(FAILURES_SHOWN)?;
    if as_json {
        return Ok(json(&shown, 0));
    }
    tell_notes(&shown);
    let text = match shown.state {
        "done" => format!("staging {id} was done already"),
        _ => format!(
            "staging {id} is stopped: {} files have arrived, {} have not; forebay stage retry {id} goes on",
            shown.placed_files, shown.missing_files
        ),
    };
    say(&text);
    Ok(0)
}

/// Waits until nobody carries it out, and takes away what one that was killed has left half done.
fn stopped(staging: &Staging) -> Result<(), Refused> {
    let Staging { id, journal, .. } = staging;
    let began = clock::now();
    loop {
        if !journal.is_running()? {
            if is_gone(journal.path()) {
                return Ok(()); // it was done before it heard of it
            }
            match journal.take_away_half_done(id) {
                Err(Error::InHand(_)) => {} // somebody began just now, and will hear of it
                taken => return Ok(taken?),
            }
        }
        if began.elapsed() > PATIENCE {
            return Err(Refused(
                format!("staging {id} was asked to stop and is still running"),
                Some("its file system may not answer; forebay stage status tells".to_owned()),
            ));
        }
        clock::sleep(STEP);
    }
}

fn forget(id: &str, as_json: bool) -> Result<i32, Refused> {
    if with_id(id)?.is_none() && jobs::with_id(id)?.is_some() {
        let message = format!("{id} is a job: what it has left is not forgotten here");
        let hint = format!("forebay clean {id} stages out what is left, and then removes it");
        return Err(Refused(message, Some(hint)));
    }
    let staging = found(id)?;
    let refused = |error| match error {
        Error::InHand(_) => Refused(
            format!("staging {id} is running"),
            Some(format!("cancel it first: forebay stage cancel {id}")),
        ),
        error => error.into(),
    };
    staging.journal.take_away_half_done(id).map_err(refused)?;
    let shown = staging.shown(FAILURES_SHOWN)?;
    let _not_in_hand = staging.journal.take_in_hand().map_err(refused)?;
    staging.forget()?;
    if as_json {
        return Ok(json(&shown, 0));
    }
    let (arrived, missing) = (shown.placed_files, shown.missing_files);
    tell_notes(&shown);
    say(&format!(
        "staging {id} is forgotten: {arrived} files have arrived, {missing} have not"
    ));
    Ok(0)
}

fn again(retry: &Retry) -> Result<i32, Refused> {
    let id = &retry.id;
    if with_id(id)?.is_none() && jobs::with_id(id)?.is_some() {
        if retry.background {
            // Its data may lie in the job's view, which whoever goes on has to take away afterwards.
            return Err(Refused(
                format!("{id} is a job: what is left of it is not staged in the background"),
                Some(format!(
                    "forebay stage retry {id} waits for its end, as forebay clean {id}"
                )),
            ));
        }
        return Ok(crate::clean::one(id, retry.json));
    }
    let staging = found(id)?;
    let events = Caught::listen()?.watch(None);
    let stops = events.stops();
    {
        let _not_in_hand = staging.journal.take_in_hand()?;
        staging.journal.retry(&|_| stops.count() == 0)?;
    }
    if retry.background {
        return start(staging, retry.json);
    }
    let is_stopped = || stops.count() > 0;
    finish(staging, &Progress::default(), &is_stopped, retry.json)
}

fn listed(list: &List) -> Result<i32, Refused> {
    let failures = if list.failed {
        usize::MAX >> 1
    } else {
        FAILURES_SHOWN
    };
    let chosen = chosen(&list.ids, failures)?;
    let code = chosen.code();
    if list.json {
        return Ok(chosen.json(code));
    }
    if !list.failed {
        return Ok(data(&table(&chosen.shown), code));
    }
    let failures = chosen.shown.iter().flat_map(|one| &one.failures);
    let lines = failures.map(|failure| {
        let remedy = failure
            .remedy
            .as_ref()
            .map_or_else(String::new, |remedy| format!("\n  {remedy}"));
        format!("{}: {}{remedy}", failure.path, failure.reason)
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    Ok(data(
        if text.is_empty() {
            "nothing failed"
        } else {
            &text
        },
        code,
    ))
}

/// The path as it is seen from everywhere, its slash at the end kept.
fn absolute(path: &Path) -> Result<PathBuf, Refused> {
    std::path::absolute(path).map_err(|error| Refused(format!("{}: {error}", path.display()), None))
}
