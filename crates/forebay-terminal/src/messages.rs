//! Messages on standard error and data on standard output.
//!
//! The reader may be gone (a closed terminal, `| head`). That must not end a job, so Forebay
//! ignores errors of standard error.

use std::borrow::Cow;
use std::io::Write;
use std::path::Path;

use forebay_host::files::{printable, printable_text};
use forebay_mover::failure_lines;
use forebay_staging::StagingSummary;

/// Writes one line to standard error.
fn line(text: &str) {
    // If standard error fails, no output remains for that error.
    writeln!(std::io::stderr().lock(), "{}", printable_text(text)).ok();
}

/// Prints an error and its hint. Returns `exit_code`.
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

/// Prints a remedy for the previous error.
pub fn print_hint(text: &str) {
    line(&format!("hint: {text}"));
}

/// Prints a warning.
pub fn print_warning(message: &str) {
    line(&format!("warning: {message}"));
}

/// Prints a status message.
pub fn print_status(message: &str) {
    line(&format!("forebay: {message}"));
}

/// Prints the failures of a stage-out.
pub fn print_failures(staged: Option<&StagingSummary>) {
    let Some(staged) = staged else { return };
    for failed in failure_lines(&staged.failures, printable) {
        print_error_line(&format!("stage out: {failed}"));
    }
    for shortage in &staged.shortages {
        print_error_line(&format!("stage out: {shortage}"));
    }
}

/// Writes data to standard output. Returns `exit_code`, or 1 instead of 0 if the data cannot be
/// written.
pub fn print_stdout(text: &str, exit_code: i32) -> i32 {
    let mut output = std::io::stdout().lock();
    match writeln!(output, "{text}").and_then(|()| output.flush()) {
        Ok(()) => exit_code,
        // The reader needs no more data, as in `| head`.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => exit_code,
        Err(error) => {
            let message = format!("cannot write to standard output: {error}");
            print_error(&message, None, exit_code.max(1))
        }
    }
}

/// The error of a command, as `--json` prints it.
#[derive(serde::Serialize, schemars::JsonSchema)]
pub struct Refusal<'a> {
    /// What failed.
    error: &'a str,
    /// What to do about it.
    hint: Option<&'a str>,
    /// The directory of the record of the job, if one was begun.
    profile: Option<Cow<'a, str>>,
    /// Exit code of the command.
    exit_code: i32,
}

/// Writes the error of a command as JSON. Returns as [`print_json`].
pub fn print_json_error(
    error: &str,
    hint: Option<&str>,
    profile: Option<&Path>,
    exit_code: i32,
) -> i32 {
    let refusal = Refusal { error, hint, profile: profile.map(Path::to_string_lossy), exit_code };
    print_json(&refusal, exit_code)
}

/// Writes one JSON value to standard output. Returns `exit_code`, or 1 as [`print_stdout`] does.
pub fn print_json(value: &impl serde::Serialize, exit_code: i32) -> i32 {
    match serde_json::to_string(value) {
        Ok(line) => print_stdout(&line, exit_code),
        Err(error) => print_error(&format!("cannot write JSON: {error}"), None, exit_code.max(1)),
    }
}
