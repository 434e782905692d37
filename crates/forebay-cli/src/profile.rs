//! `forebay profile`, and the message about the I/O profile at the end of a job.
//! Never allocates or stages anything for the command.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use clap::{Args, Subcommand};
use forebay_host::process::SignalGuard;
use forebay_job::{Command, Error};
use forebay_profile::{Recording, summarize};
use forebay_terminal::{CliError, Progress, observers, print_json, print_status};

use crate::parsers::time;

#[derive(Debug, Args)]
pub struct ProfileArguments {
    #[command(subcommand)]
    pub verb: Option<ProfileVerb>,
    /// The command, after --
    #[arg(last = true, value_name = "COMMAND", required = true)]
    pub command: Vec<OsString>,
    /// Also record each I/O call
    #[arg(long)]
    pub trace: bool,
    /// Time limit: minutes, h:m:s or d-h:m:s; 0 is no limit
    #[arg(short, long, value_name = "TIME", value_parser = time)]
    pub time: Option<Duration>,
    /// Print one JSON object about the run; the command's own output goes to standard error
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum ProfileVerb {
    /// Write the record of a job as a Darshan log
    #[command(disable_help_flag = true)]
    Export {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        words: Vec<OsString>,
    },
}

pub fn profile(arguments: &ProfileArguments) -> i32 {
    let reporter = Progress::default();
    let command = Command {
        words: &arguments.command,
        time_limit: arguments.time.filter(|limit| !limit.is_zero()),
        output_to_error: arguments.json,
        recording: Recording { libraries: observers(), trace: arguments.trace, emulated: None },
    };
    let caught = SignalGuard::listen_all().map_err(Error::from);
    match caught.and_then(|caught| command.run(caught, &reporter)) {
        Ok(done) => {
            if let Some(directory) = &done.profile {
                print_record(directory, done.job_s, "command", done.exit_code);
            }
            if arguments.json {
                return print_json(&done, done.exit_code);
            }
            done.exit_code
        }
        Err(error) => CliError::of_job(error).print_with_json(arguments.json, reporter.record()),
    }
}

/// Prints the command that shows a profile or explains a failure. Returns false, and prints nothing, if no program was
/// recorded.
pub fn print_record(directory: &Path, job_s: f64, what: &str, exit_code: i32) -> bool {
    let summarize = summarize(directory);
    if summarize.programs == 0 {
        return false;
    }
    let found = match summarize.io_s {
        Some(io_s) if job_s > 0.0 => share(io_s / job_s, what),
        _ => format!("not all of the {what}'s I/O is recorded"),
    };
    print_next(directory, &found, if exit_code == 0 { "report" } else { "why" });
    true
}

/// Prints the command that explains a failure.
pub fn print_why(directory: &Path, about: &str) {
    print_next(directory, about, "why");
}

fn print_next(directory: &Path, about: &str, verb: &str) {
    let id = directory.file_name().unwrap_or_default().to_string_lossy();
    print_status(&format!("{about}: forebay {verb} {id}"));
}

fn share(share: f64, what: &str) -> String {
    let percent = (share * 100.0).clamp(0.0, 100.0);
    if percent < 1.0 {
        format!("I/O took less than 1 % of the {what}")
    } else {
        format!("I/O took {percent:.0} % of the {what}")
    }
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn shares_are_whole_percents() {
        assert_eq!(share(0.123, "job"), "I/O took 12 % of the job");
        assert_eq!(share(0.001, "job"), "I/O took less than 1 % of the job");
        assert_eq!(share(1.02, "command"), "I/O took 100 % of the command");
    }
}
