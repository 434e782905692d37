//! What another program says.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::{Result, clock, on};

/// How often we look whether to go on.
const LOOK: Duration = Duration::from_millis(20);

/// Runs a command for what it prints; none if it has not ended within `patience`, or is not to go on: it is
/// killed then.
///
/// Whether it succeeded cannot be told: while a job runs, its remains are taken by whoever waits for the job.
///
/// # Errors
/// If it cannot be started.
pub fn answer_of(
    mut command: Command,
    patience: Duration,
    go_on: &dyn Fn() -> bool,
) -> Result<Option<String>> {
    let path = std::path::PathBuf::from(command.get_program());
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = on(command.stderr(Stdio::null()).spawn(), "run", &path)?;
    let (sender, receiver) = mpsc::channel();
    if let Some(mut output) = child.stdout.take() {
        std::thread::spawn(move || {
            let mut said = String::new();
            let read = output.read_to_string(&mut said);
            sender.send(read.map(|_| said)).ok(); // nobody may wait any more
        });
    }
    let began = clock::now();
    let said = loop {
        let said = receiver.recv_timeout(LOOK);
        if said.is_ok() || began.elapsed() > patience || !go_on() {
            break said;
        }
    };
    if said.is_err() {
        child.kill().ok(); // it may have ended just now
    }
    child.wait().ok(); // it may have been waited for
    said.ok()
        .map(|said| on(said, "read what is said by", &path))
        .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::command;

    #[test]
    fn a_program_answers_in_time_or_not_at_all() {
        let ask = |script: &str, patience| {
            let mut shell = command("/bin/sh");
            shell.args(["-c", script]);
            answer_of(shell, Duration::from_millis(patience), &|| true).expect("started")
        };
        assert_eq!(ask("echo 7; echo no >&2", 60_000).as_deref(), Some("7\n"));
        assert_eq!(ask("exec sleep 600", 50), None);
        let mut sleeper = command("sleep");
        sleeper.arg("600");
        let stopped = answer_of(sleeper, Duration::from_secs(600), &|| false);
        assert_eq!(stopped.expect("started"), None);
        let missing = answer_of(command("/no/such"), Duration::from_secs(1), &|| true);
        assert!(missing.expect_err("missing").is_not_found());
    }
}
