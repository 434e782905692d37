//! `forebay profile`, and what the end of a job says about its record.

use std::path::Path;

use forebay_control::{Command, Error, Recording, seen};
use forebay_host::process::Caught;

use crate::arguments::ProfileArguments;
use crate::libraries;
use crate::messages::{self, fail, say};
use crate::progress::Progress;

pub fn profile(arguments: &ProfileArguments) -> i32 {
    let watcher = Progress::default();
    let command = Command {
        words: &arguments.command,
        time_limit: arguments.time.filter(|limit| !limit.is_zero()),
        output_to_error: arguments.json,
        recording: Recording {
            libraries: libraries::observers(),
            trace: arguments.trace,
            emulated: None,
        },
    };
    let caught = Caught::listen_for_a_command().map_err(Error::from);
    match caught.and_then(|caught| command.run(caught, &watcher)) {
        Ok(done) => {
            if let Some(directory) = &done.profile {
                tell(directory, done.job_s, "command", done.exit_code);
            }
            if arguments.json {
                return messages::json(&done, done.exit_code);
            }
            done.exit_code
        }
        Err(error) => {
            let (hint, exit_code) = (error.hint(), error.exit_code());
            let message = error.to_string();
            fail(&message, hint.as_deref(), exit_code);
            if arguments.json {
                return messages::refusal(&message, hint.as_deref(), watcher.record(), exit_code);
            }
            exit_code
        }
    }
}

/// Says how to look at what was recorded, or why it failed; nothing if nothing was recorded.
pub fn tell(directory: &Path, job_s: f64, what: &str, exit_code: i32) {
    let seen = seen(directory);
    if seen.programs == 0 {
        return;
    }
    let id = directory.file_name().unwrap_or_default().to_string_lossy();
    let found = match seen.io_s {
        Some(io_s) if job_s > 0.0 => share(io_s / job_s, what),
        _ => format!("not all of the {what}'s I/O is recorded"),
    };
    let verb = if exit_code == 0 { "report" } else { "why" };
    say(&format!("{found}: forebay {verb} {id}"));
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
