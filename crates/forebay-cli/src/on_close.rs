//! `forebay watch`, and commands on close of `forebay run`.

use std::ffi::OsString;
use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_control::{Calls, Error, FINISH, Handled, Handler, Handling, READY, STOP};
use forebay_host::files::real_path;
use forebay_host::process::{Bell, Caught};

use crate::arguments::{RunArguments, WatchArguments};
use crate::messages::{data, error, fail, json, say, warn};

/// Exit code when a command failed or nothing could be watched.
const FAILED: i32 = 1;
/// Failures named one by one; `--json` has all.
const SHOWN: usize = 10;
pub const COMMANDS: &str = "commands";

pub fn watch(arguments: &WatchArguments) -> i32 {
    match handle(arguments) {
        Ok((handled, signal)) => {
            let failed = if handled.failures.is_empty() {
                0
            } else {
                FAILED
            };
            let code = signal.map_or(failed, |signal| 128 + signal);
            if !arguments.beside_job {
                tell(&handled, if arguments.calls { "calls" } else { COMMANDS });
            }
            if arguments.json || arguments.is_started() {
                return json(&handled, code);
            }
            code
        }
        Err(error) => fail(&format!("watch: {error}"), error.hint().as_deref(), FAILED),
    }
}

/// What became of the commands, and the signal that ended us.
fn handle(arguments: &WatchArguments) -> Result<(Handled, Option<i32>), Error> {
    let caught = Caught::listen()?;
    let directories = arguments.directories.iter();
    // The command may work elsewhere.
    let roots = directories
        .map(|directory| real_path(directory))
        .collect::<Result<Vec<_>, _>>()?;
    let log = arguments
        .log
        .as_deref()
        .map(std::path::absolute)
        .transpose();
    let how = Handling {
        at_most: arguments.at_most as usize,
        retries: arguments.retries,
        log: log.unwrap_or(arguments.log.clone()),
        calls: arguments.calls.then(|| Arc::new(Calls::new(hand_out))),
    };
    let events = caught.watch(None);
    let finish = Arc::new(AtomicBool::new(false));
    if arguments.is_started() {
        let (finish, bell, calls) = (Arc::clone(&finish), events.bell(), how.calls.clone());
        std::thread::spawn(move || obey(&finish, &bell, calls.as_deref()));
    }
    let handler = Handler::new(&arguments.on_close, &roots, &how, &warn);
    let ready = || {
        if arguments.is_started() {
            data(READY, 0);
        } else {
            for root in &roots {
                say(&format!("watching {}; Ctrl-C ends it", root.display()));
            }
        }
    };
    let handled = handler.watch(&events, ready, || finish.load(Ordering::SeqCst))?;
    Ok((handled, events.stops().signal()))
}

fn hand_out(line: &str) {
    data(line, 0);
}

/// What whoever started us says; if he says nothing any more, he is gone, or wants an end at once.
fn obey(finish: &AtomicBool, bell: &Bell, calls: Option<&Calls>) {
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match (line.as_str(), calls) {
            (FINISH, _) => {
                finish.store(true, Ordering::SeqCst);
                bell.ring();
            }
            (STOP, _) => bell.hang_up(),
            (answer, Some(calls)) => {
                if let Err(wrong) = calls.answer(answer) {
                    warn(&wrong);
                    break;
                }
            }
            (other, None) => warn(&format!("{other} is not understood")),
        }
    }
    if let Some(calls) = calls {
        calls.gone();
    }
    bell.hang_up();
}

/// The same command line for a process beside a job; empty if there is nothing for it to do.
pub fn words(arguments: &RunArguments) -> Vec<OsString> {
    let handling = &arguments.handling;
    let rules = arguments.on_close.iter();
    let mut words: Vec<OsString> = rules
        .flat_map(|rule| [OsString::from("--on-close"), OsString::from(&rule.text)])
        .collect();
    if words.is_empty() {
        return words;
    }
    words.splice(0..0, ["watch".into(), "--beside-job".into()]);
    words.extend([
        "--at-most".into(),
        handling.on_close_at_most.to_string().into(),
    ]);
    words.extend([
        "--retries".into(),
        handling.on_close_retries.to_string().into(),
    ]);
    if let Some(log) = &handling.on_close_log {
        // The job may work elsewhere.
        let log = std::path::absolute(log).unwrap_or_else(|_| log.clone());
        words.extend(["--log".into(), log.into()]);
    }
    words
}

/// Tells what became of the commands, or whatever they are.
pub fn tell(handled: &Handled, what: &str) {
    let Handled { done, failed, .. } = handled;
    say(&format!(
        "on close: {done} {what} succeeded, {failed} failed"
    ));
    for (path, version, reason) in handled.failures.iter().take(SHOWN) {
        error(&format!("on close: {path}, version {version}: {reason}"));
    }
    if handled.failures.len() > SHOWN {
        error(&format!(
            "on close: and {} more",
            handled.failures.len() - SHOWN
        ));
    }
}
