//! Runs a program within a time limit, and returns its standard output, which it keeps in memory.
//! Assumes that the program's children end with it: one that has the output open uses up the time limit.
//! At the limit it kills the process group, and does not wait for a program that survives.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use crate::{Result, clock, threads, with_context};

/// The interval of calls to `should_continue`.
const LOOK: Duration = Duration::from_millis(20);

/// The result of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// Whether its exit status is 0; false if [`super::Events`] has reaped it first.
    pub success: bool,
    /// Its standard output.
    pub output: String,
}

/// Runs a program without input. Returns none and kills its process group if it runs longer than
/// `time_max`, or if `should_continue` returns false.
pub fn run_captured(
    mut command: Command,
    time_max: Duration,
    should_continue: &dyn Fn() -> bool,
) -> Result<Option<Captured>> {
    let path = Path::new(command.get_program()).to_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command.stderr(Stdio::null()).process_group(0);
    let mut child = with_context(command.spawn(), "run", &path)?;
    let pid = Pid::from_child(&child);
    let pipe = child.stdout.take();
    let (sender, receiver) = mpsc::channel();
    let reader = threads::spawn(move || {
        let mut output = Vec::new();
        let read = pipe.map(|mut pipe| pipe.read_to_end(&mut output));
        // Does not reap the process, so that its PID is not reused.
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        rustix::process::waitid(WaitId::Pid(pid), ended).ok();
        sender.send((read, output)).ok(); // after the time limit the receiver is gone
    });
    if let Err(error) = reader {
        rustix::process::kill_process_group(pid, Signal::KILL).ok();
        child.wait().ok(); // it was killed
        return Err(error);
    }
    let began = clock::now();
    let (read, output) = loop {
        match receiver.recv_timeout(LOOK) {
            Ok(ended) => break ended,
            Err(_) if began.elapsed() <= time_max && should_continue() => {}
            Err(_) => {
                rustix::process::kill_process_group(pid, Signal::KILL).ok();
                child.try_wait().ok(); // does not wait for a process that survives SIGKILL
                return Ok(None);
            }
        }
    };
    with_context(read.transpose(), "read the output of", &path)?;
    Ok(Some(Captured {
        success: child.wait().is_ok_and(|status| status.success()),
        output: String::from_utf8_lossy(&output).into_owned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::super::launch::command;
    use super::*;

    fn shell(script: &str, time_max: Duration) -> Option<Captured> {
        let mut shell = command("/bin/sh");
        shell.args(["-c", script]);
        run_captured(shell, time_max, &|| true).expect("start")
    }

    #[test]
    fn run_captured_returns_output_and_success() {
        let long = Duration::from_secs(60);
        let captured = |success, output: &str| {
            let output = output.to_owned();
            Some(Captured { success, output })
        };
        assert_eq!(shell("echo yes; echo no >&2", long), captured(true, "yes\n"));
        assert_eq!(shell("cat; echo no; exit 3", long), captured(false, "no\n"));
        let large = shell("head -c 300000 /dev/zero", long).expect("output");
        assert_eq!(large.output.len(), 300_000);
        let mut sleeper = command("sleep");
        sleeper.arg("600");
        let stopped = run_captured(sleeper, long, &|| false);
        assert_eq!(stopped.expect("started"), None);
        let missing = run_captured(command("/no/such"), long, &|| true);
        assert!(missing.expect_err("missing").is_not_found());
    }

    #[test]
    fn run_captured_kills_the_process_group_at_the_time_limit() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let name = scratch.path().join("pid");
        let script = format!("sleep 300 & echo $! > {}; exec sleep 300", name.display());
        // The time limit may end before the shell writes the file.
        let mut time_max = Duration::from_millis(200);
        let pid = loop {
            assert_eq!(shell(&script, time_max), None);
            if let Ok(pid) = std::fs::read_to_string(&name) {
                break pid;
            }
            time_max *= 2;
        };
        let stat = format!("/proc/{}/stat", pid.trim());
        // The process is gone, or a zombie that its new parent has not reaped.
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            crate::clock::sleep(Duration::from_millis(1));
        }
    }
}
