//! What the user reads.
//!
//! A reader may be gone (a closed terminal, `| head`). That must not end a job half way, so what
//! cannot be written to standard error is dropped.

use std::borrow::Cow;
use std::io::Write;
use std::path::Path;

use forebay_staging::Staged;

/// Writes one line to standard error.
fn line(text: &str) {
    // Nobody is left to be told that nobody is left.
    writeln!(std::io::stderr().lock(), "{text}").ok();
}

/// Prints an error and its hint; returns the exit code given.
pub fn print_error(message: &str, hint: Option<&str>, exit_code: i32) -> i32 {
    print_error_line(message);
    if let Some(text) = hint {
        print_hint(text);
    }
    exit_code
}

/// Prints an error.
pub fn print_error_line(message: &str) {
    line(&format!("error: {message}"));
}

/// Prints what to do about the error before.
pub fn print_hint(text: &str) {
    line(&format!("hint: {text}"));
}

/// Prints a warning.
pub fn print_warning(message: &str) {
    line(&format!("warning: {message}"));
}

/// Says what is going on.
pub fn print_status(message: &str) {
    line(&format!("forebay: {message}"));
}

/// Failures named one by one; `--json` has all.
const FAILURES_SHOWN: usize = 10;

/// Prints what did not arrive.
pub fn print_failures(staged: Option<&Staged>) {
    let Some(staged) = staged else { return };
    let count = staged.failures.len();
    for failure in staged.failures.iter().take(FAILURES_SHOWN) {
        let (path, reason) = (failure.path.display(), &failure.reason);
        print_error_line(&format!("stage out: {path}: {reason}"));
    }
    if count > FAILURES_SHOWN {
        print_error_line(&format!("stage out: and {} more", count - FAILURES_SHOWN));
    }
    for shortage in &staged.shortages {
        print_error_line(&format!("stage out: {shortage}"));
    }
}

/// Writes data to standard output; returns the exit code given, but 1 instead of 0 if they cannot
/// be written.
pub fn print_stdout(text: &str, exit_code: i32) -> i32 {
    let mut output = std::io::stdout().lock();
    match writeln!(output, "{text}").and_then(|()| output.flush()) {
        Ok(()) => exit_code,
        // The reader has seen enough, as in `| head`.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => exit_code,
        Err(error) => {
            let message = format!("cannot write to standard output: {error}");
            print_error(&message, None, exit_code.max(1))
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

/// Writes as JSON why a command was not carried out; returns as [`print_json`].
pub fn print_json_error(
    error: &str,
    hint: Option<&str>,
    profile: Option<&Path>,
    exit_code: i32,
) -> i32 {
    let refusal = Refusal { error, hint, profile: profile.map(Path::to_string_lossy), exit_code };
    print_json(&refusal, exit_code)
}

/// Writes one JSON value to standard output; returns the exit code given, or 1 as [`print_stdout`] does.
pub fn print_json(value: &impl serde::Serialize, exit_code: i32) -> i32 {
    match serde_json::to_string(value) {
        Ok(line) => print_stdout(&line, exit_code),
        Err(error) => print_error(&format!("cannot write JSON: {error}"), None, exit_code.max(1)),
    }
}
