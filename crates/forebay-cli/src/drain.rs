//! `forebay drain`, in a job: how far the drain is; and the stand-in for Spectral's command that waits.

use std::ffi::OsString;

use clap::{Args, Subcommand};
use forebay_onclose::{ControlRequest, DrainStatus, Error, query_drain};
use forebay_terminal::{
    CliError, print_error, print_error_line, print_hint, print_json, print_stdout, print_warning,
};
use indicatif::HumanBytes;

#[derive(Debug, Args)]
pub struct DrainArguments {
    #[command(subcommand)]
    pub verb: DrainVerb,
}

#[derive(Debug, Subcommand)]
pub enum DrainVerb {
    /// Tell how far it is
    #[command(after_help = "Example:\n  forebay drain status --json")]
    Status {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Wait until everything that is closed by now has been copied, and tell
    #[command(after_help = "Example:\n  forebay drain wait")]
    Wait {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

/// Exit code when something did not arrive, or nobody can tell.
const NOT_ALL_SAFE: i32 = 1;
/// Failures named one by one; `--json` has all.
const SHOWN: usize = 10;

pub fn drain(arguments: &DrainArguments) -> i32 {
    let (question, as_json) = match arguments.verb {
        DrainVerb::Status { json } => (ControlRequest::Status, json),
        DrainVerb::Wait { json } => (ControlRequest::Wait, json),
    };
    match query_drain(&question) {
        Ok(status) if as_json => print_json(&status, exit_code(&status)),
        Ok(status) => {
            let bytes = HumanBytes(status.bytes);
            let text = format!("{} ({bytes}){}", counts(&status), leaving_out(&status));
            print_stdout(&text, complain(&status))
        }
        Err(error) => CliError::from(error).print_with_json(as_json, None),
    }
}

/// As Spectral counts.
fn counts(status: &DrainStatus) -> String {
    let DrainStatus {
        enqueued,
        dequeued,
        done,
        ..
    } = status;
    format!("Enqueued:{enqueued} Dequeued:{dequeued} Done:{done}")
}

/// Why not all that was enqueued is done, where nothing is wrong.
fn leaving_out(status: &DrainStatus) -> String {
    let counts = [
        (status.waiting, "waiting"),
        (status.superseded, "written anew or removed before"),
        (status.skipped, "older than the newest"),
        (
            status.not_staged,
            "not drained, since no stage_out line takes them",
        ),
    ];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    counts
        .map(|(count, what)| format!("; {count} {what}"))
        .collect()
}

fn complain(status: &DrainStatus) -> i32 {
    for (path, reason) in status.failures.iter().take(SHOWN) {
        print_error_line(&format!("drain: {path}: {reason}"));
    }
    if !status.failures.is_empty() {
        let number = status.failures.len();
        print_hint(&format!(
            "files that did not arrive: {number}; stage-out tries again after the job"
        ));
    }
    exit_code(status)
}

fn exit_code(status: &DrainStatus) -> i32 {
    if status.failures.is_empty() {
        0
    } else {
        NOT_ALL_SAFE
    }
}

/// Spectral's `spectral_wait.py`.
pub fn spectral_wait(_words: &[OsString]) -> i32 {
    let waited = announce().and_then(|_| {
        let begin = query_drain(&ControlRequest::Status)?;
        print_stdout(&counts(&begin), 0);
        query_drain(&ControlRequest::Wait)
    });
    match waited {
        Ok(status) => {
            let code = complain(&status);
            print_stdout(&counts(&status), code);
            if code == 0 {
                return print_stdout("All files moved", 0);
            }
            code
        }
        Err(error) => print_error(
            &format!("spectral_wait.py: {error}"),
            error.hint().as_deref(),
            NOT_ALL_SAFE,
        ),
    }
}

/// Tells `forebay run` where Spectral's files go, if the script has said so by now.
fn announce() -> Result<bool, Error> {
    let named = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let (Some(persist), Some(pfs)) = (named("PERSIST_DIR"), named("PFS_DIR")) else {
        return Ok(false);
    };
    query_drain(&ControlRequest::Spectral { persist, pfs }).map(|_| true)
}

/// The same, from a launcher in any job.
pub fn announce_from_launcher() {
    match announce() {
        // A job that was not started with Spectral has no socket for it, and means nothing by the variables.
        Ok(_) | Err(Error::NoDrain { .. }) => {}
        Err(error) => print_warning(&format!("Spectral: {error}")),
    }
}
