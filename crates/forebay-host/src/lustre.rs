//! Queries Lustre with the command `lfs`: the installed one, or the one that Forebay emulates for
//! this process and its children.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use rustix::fs::Mode;

use crate::process::{command, run_captured};
use crate::{Error, Result, system};

/// The variable that passes the emulation on to children (`docs/explanation/emulation.md`).
const EMULATION: &str = "FOREBAY_PFS_STATE";
const LFS: &str = "lfs";
/// The time limit for an answer.
const LFS_TIMEOUT: Duration = Duration::from_secs(10);

/// Whether Forebay emulates Lustre for this process. `lfs` knows the emulated directories.
pub fn is_emulated() -> bool {
    std::env::var_os(EMULATION).is_some_and(|state| !state.is_empty())
}

/// Runs `lfs` with these arguments and returns its standard output; drops its standard error. Runs
/// this program as `lfs` if Lustre is emulated, otherwise the first `lfs` in `PATH`. Files that it
/// creates are accessible only to this user.
///
/// # Errors
/// If `lfs` is missing, does not start, does not answer within 10 s, or `should_continue` returns false.
pub fn lfs(words: &[&OsStr], should_continue: &dyn Fn() -> bool) -> Result<String> {
    let missing =
        |kind: io::ErrorKind| Error { operation: "ask", path: LFS.into(), source: kind.into() };
    let mut asked = if is_emulated() {
        let mut stand_in = command(system::this_program()?);
        stand_in.arg0(LFS);
        stand_in
    } else {
        let found = system::find_other_program(LFS);
        command(found.ok_or_else(|| missing(io::ErrorKind::NotFound))?)
    };
    with_private_umask(asked.args(words));
    let captured = run_captured(asked, LFS_TIMEOUT, should_continue)?;
    let captured = captured.ok_or_else(|| missing(io::ErrorKind::TimedOut))?;
    Ok(captured.output)
}

/// Makes files that the command creates accessible only to their owner.
fn with_private_umask(command: &mut Command) {
    let close = || {
        rustix::process::umask(Mode::RWXG | Mode::RWXO);
        Ok(())
    };
    // SAFETY: umask(2) is safe after fork(2) in a process with threads: signal-safety(7).
    unsafe { command.pre_exec(close) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn created_files_are_private_to_the_owner() {
        let mut shell = command("/bin/sh");
        with_private_umask(shell.args(["-c", "umask"]));
        let captured = run_captured(shell, LFS_TIMEOUT, &|| true).expect("started");
        assert_eq!(captured.expect("in time").output, "0077\n");
    }
}
