//! Trying out what this machine allows.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::fs::{Access, Mode, OFlags};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use crate::{Result, files, machine, on};

/// What a program said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Did it exit with status 0?
    pub success: bool,
    /// Its standard output.
    pub output: String,
}

/// Runs a program for its standard output, without input. `None` if it has not ended within the
/// time given: then it is killed, with all it started in its process group.
///
/// # Errors
/// If it cannot be started.
pub fn ask(mut command: Command, time_max: Duration) -> Result<Option<Answer>> {
    let path = Path::new(command.get_program()).to_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command.stderr(Stdio::null()).process_group(0);
    let mut child = on(command.spawn(), "run", &path)?;
    let pid = Pid::from_child(&child);
    let pipe = child.stdout.take();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut output = Vec::new();
        let read = pipe.map(|mut pipe| pipe.read_to_end(&mut output));
        // Not reaped here: until it is, nobody else gets its number.
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        rustix::process::waitid(WaitId::Pid(pid), ended).ok();
        // Nobody listens any more if the time was up.
        sender.send((read, output)).ok();
    });
    let Ok((read, output)) = receiver.recv_timeout(time_max) else {
        // What does not even die of this is left to itself.
        rustix::process::kill_process_group(pid, Signal::KILL).ok();
        child.try_wait().ok();
        return Ok(None);
    };
    on(read.transpose(), "read what was said by", &path)?;
    Ok(Some(Answer {
        success: on(child.wait(), "wait for", &path)?.success(),
        output: String::from_utf8_lossy(&output).into_owned(),
    }))
}

/// Can this user open it to read and write? For devices whose opening changes nothing.
///
/// # Errors
/// As `open(2)`.
pub fn open_both_ways(path: &Path) -> Result<()> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    on(rustix::fs::open(path, flags, Mode::empty()), "open", path).map(drop)
}

/// May this user make names in the directory?
///
/// # Errors
/// As `access(2)`.
pub fn may_write_in(directory: &Path) -> Result<()> {
    let may = rustix::fs::access(directory, Access::WRITE_OK | Access::EXEC_OK);
    on(may, "write in", directory)
}

/// May this user run the program in this directory? It is sought in `$PATH` if it has no slash. What kind of
/// file it is only running it tells.
///
/// # Errors
/// As `access(2)`.
pub fn may_run(program: &Path, directory: &Path) -> Result<()> {
    let name = program.to_str().filter(|name| !name.contains('/'));
    let found = name.and_then(machine::find_other_program);
    let path = found.unwrap_or_else(|| directory.join(program));
    on(rustix::fs::access(&path, Access::EXEC_OK), "run", program)
}

/// A setting of the kernel, as /proc/sys and /sys show it; `None` if this kernel has no such.
#[must_use]
pub fn setting(path: &str) -> Option<String> {
    let text = files::read_to_string(Path::new(path)).ok()?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::command;

    fn shell(script: &str, time_max: Duration) -> Option<Answer> {
        let mut shell = command("/bin/sh");
        shell.args(["-c", script]);
        ask(shell, time_max).expect("start")
    }

    #[test]
    fn a_program_is_heard_to_its_end() {
        let long = Duration::from_secs(60);
        let said = |success, output: &str| {
            let output = output.to_owned();
            Some(Answer { success, output })
        };
        assert_eq!(shell("echo yes; echo no >&2", long), said(true, "yes\n"));
        assert_eq!(shell("cat; echo no; exit 3", long), said(false, "no\n"));
        let large = shell("head -c 300000 /dev/zero", long).expect("answer");
        assert_eq!(large.output.len(), 300_000);
        assert!(ask(command("/no/such"), long).is_err());
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_what_it_started() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let name = scratch.path().join("pid");
        let script = format!("sleep 300 & echo $! > {}; exec sleep 300", name.display());
        // The time may be up before the shell has come that far.
        let mut time_max = Duration::from_millis(200);
        let pid = loop {
            assert_eq!(shell(&script, time_max), None);
            if let Ok(pid) = std::fs::read_to_string(&name) {
                break pid;
            }
            time_max *= 2;
        };
        let stat = format!("/proc/{}/stat", pid.trim());
        // Gone, or dead and not yet reaped by whoever inherited it.
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            crate::clock::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn what_may_not_be_opened_is_said() {
        assert!(open_both_ways(Path::new("/dev/null")).is_ok());
        assert!(may_write_in(Path::new("/no/such")).is_err());
        assert_eq!(setting("/proc/sys/no/such"), None);
    }
}
