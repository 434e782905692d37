//! What the user reads.
//!
//! A reader may be gone (a closed terminal, `| head`). That must not end a job half way, so what
//! cannot be written to standard error is dropped.

use std::borrow::Cow;
use std::io::Write;
use std::path::Path;

use forebay_control::Staged;

/// Writes one line to standard error.
fn line(text: &str) {
    // Nobody is left to be told that nobody is left.
    writeln!(std::io::stderr().lock(), "{text}").ok();
}

/// Prints an error and its hint; returns the exit code given.
pub fn fail(message: &str, hint: Option<&str>, exit_code: i32) -> i32 {
    error(message);
    if let Some(text) = hint {
        self::hint(text);
    }
    exit_code
}

/// Prints an error.
pub fn error(message: &str) {
    line(&format!("error: {message}"));
}

/// Prints what to do about the error before.
pub fn hint(text: &str) {
    line(&format!("hint: {text}"));
}

/// Prints a warning.
pub fn warn(message: &str) {
    line(&format!("warning: {message}"));
}

/// Says what is going on.
pub fn say(message: &str) {
    line(&format!("forebay: {message}"));
}

/// Failures named one by one; `--json` has all.
const FAILURES_SHOWN: usize = 10;

/// Prints what did not arrive.
pub fn failures(staged: Option<&Staged>) {
    let Some(staged) = staged else { return };
    let count = staged.failures.len();
    for failure in staged.failures.iter().take(FAILURES_SHOWN) {
        let (path, reason) = (failure.path.display(), &failure.reason);
        error(&format!("stage out: {path}: {reason}"));
    }
    if count > FAILURES_SHOWN {
        error(&format!("stage out: and {} more", count - FAILURES_SHOWN));
    }
    for shortage in &staged.shortages {
        error(&format!("stage out: {shortage}"));
    }
}

/// Writes data to standard output; returns the exit code given, but 1 instead of 0 if they cannot
/// be written.
pub fn data(text: &str, exit_code: i32) -> i32 {
    let mut output = std::io::stdout().lock();
    match writeln!(output, "{text}").and_then(|()| output.flush()) {
        Ok(()) => exit_code,
        // The reader has seen enough, as in `| head`.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => exit_code,
        Err(error) => {
            let message = format!("cannot write to standard output: {error}");
            fail(&message, None, exit_code.max(1))
        }
    }
}

/// A command that was not carried out, as `--json` shows it.
#[derive(serde::Serialize)]
struct Refusal<'a> {
    error: &'a str,
    hint: Option<&'a str>,
    profile: Option<Cow<'a, str>>,
    exit_code: i32,
}

/// Writes as JSON why a command was not carried out; returns as [`json`].
pub fn refusal(error: &str, hint: Option<&str>, profile: Option<&Path>, exit_code: i32) -> i32 {
    let refusal = Refusal {
        error,
        hint,
        profile: profile.map(Path::to_string_lossy),
        exit_code,
    };
    json(&refusal, exit_code)
}

/// Writes one JSON value to standard output; returns the exit code given, or 1 as [`data`] does.
pub fn json(value: &impl serde::Serialize, exit_code: i32) -> i32 {
    match serde_json::to_string(value) {
        Ok(line) => data(&line, exit_code),
        Err(error) => fail(
            &format!("cannot write JSON: {error}"),
            None,
            exit_code.max(1),
        ),
    }
}
