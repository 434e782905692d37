//! `forebay drain`, in a job: reports the progress of the drain.

use clap::{Args, Subcommand};
use forebay_onclose::{ControlRequest, DrainStatus, query_drain};
use forebay_terminal::{
    CliError, drain_counts, drain_exit_code, print_drain_failures, print_json, print_stdout,
};
use indicatif::HumanBytes;

#[derive(Debug, Args)]
pub struct DrainArguments {
    #[command(subcommand)]
    pub verb: DrainVerb,
}

#[derive(Debug, Subcommand)]
pub enum DrainVerb {
    /// Show the progress
    #[command(after_help = "Example:\n  forebay drain status --json")]
    Status {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Wait until all files that are closed now are copied, then show the progress
    #[command(after_help = "Example:\n  forebay drain wait")]
    Wait {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

pub fn drain(arguments: &DrainArguments) -> i32 {
    let (question, as_json) = match arguments.verb {
        DrainVerb::Status { json } => (ControlRequest::Status, json),
        DrainVerb::Wait { json } => (ControlRequest::Wait, json),
    };
    match query_drain(&question) {
        Ok(status) if as_json => print_json(&status, drain_exit_code(&status)),
        Ok(status) => {
            let bytes = HumanBytes(status.bytes);
            let text = format!("{} ({bytes}){}", drain_counts(&status), leaving_out(&status));
            print_stdout(&text, print_drain_failures(&status))
        }
        Err(error) => CliError::from(error).print_with_json(as_json, None),
    }
}

/// Formats the counts of uncopied files that are not failures.
fn leaving_out(status: &DrainStatus) -> String {
    let counts = [
        (status.waiting, "waiting"),
        (status.superseded, "overwritten or removed before"),
        (status.skipped, "older than the newest"),
        (status.not_staged, "not drained, since no stage_out line takes them"),
    ];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    counts.map(|(count, what)| format!("; {count} {what}")).collect()
}
