//! Runs a command whose standard input and output are pipes of this process.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal};

use crate::{Result, clock, with_context};

/// How long a killed command has to end. One that waits in the kernel may survive SIGKILL.
const END_MS_MAX: u32 = 1000;

/// A running command in its own process group. The drop kills the group.
#[derive(Debug)]
pub struct Piped {
    child: Child,
    pid: Pid,
}

impl Piped {
    /// Starts a command. Returns its standard input and output with it.
    pub fn start(mut command: Command) -> Result<(Self, ChildStdin, ChildStdout)> {
        let path = Path::new(command.get_program()).to_owned();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut child = with_context(command.spawn(), "run", &path)?;
        let pid = Pid::from_child(&child);
        let pipes = child.stdin.take().zip(child.stdout.take());
        let piped = Self { child, pid };
        let no_pipe = || std::io::Error::other("no pipe");
        let (input, output) = with_context(pipes.ok_or_else(no_pipe), "connect to", &path)?;
        Ok((piped, input, output))
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_some()) {
            return; // its number may be another's now
        }
        rustix::process::kill_process_group(self.pid, Signal::KILL).ok(); // it may have ended
        for _ in 0..END_MS_MAX {
            match self.child.try_wait() {
                Ok(None) => clock::sleep(Duration::from_millis(1)),
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::super::launch::command;
    use super::*;

    #[test]
    fn piped_command_reads_and_answers() {
        let (process, mut input, mut output) = Piped::start(command("cat")).expect("start");
        input.write_all(b"ping").expect("write");
        drop(input);
        let mut text = String::new();
        output.read_to_string(&mut text).expect("read");
        assert_eq!(text, "ping");
        drop(process);
    }

    #[test]
    fn drop_kills_the_whole_group() {
        let mut shell = command("/bin/sh");
        shell.args(["-c", "sleep 300 & echo $!; wait"]);
        let (process, _input, mut output) = Piped::start(shell).expect("start");
        let mut first = [0; 1];
        output.read_exact(&mut first).expect("read");
        drop(process);
        // The end of the output: all processes that could write to it have ended.
        output.read_to_end(&mut Vec::new()).expect("read");
    }
}
