//! Renames a file in a new process just before it becomes its program: a kill of the parent cannot separate the two.
//! The new name survives a power failure; the caller syncs the file.
//! Assumes that all options of the command are set before, without `env_clear` and `arg0`, which it cannot see.
//! Allocates nothing in the new process.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, c_char};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::{Result, files, with_context};

/// The default search path of execvp(3).
const USUAL: &str = "/bin:/usr/bin";

/// Makes the command rename a file just before exec: after a kill, both steps have happened or
/// neither. Call it after setting all other options. Unlike execvp(3), it does not run files of
/// unknown format with a shell.
///
/// # Errors
/// If a path or an argument contains a zero byte, or the directory of the file cannot be opened.
pub fn rename_before_exec(command: &mut Command, from: &Path, to: &Path) -> Result<()> {
    let directory = files::open_directory(files::parent_of(to), true)?;
    let (from, to) = (c_string(from.as_os_str())?, c_string(to.as_os_str())?);
    let program = Program::of(command)?;
    let act = move || {
        rustix::fs::rename(from.as_c_str(), to.as_c_str())?;
        files::sync_opened(&directory)?;
        Err(program.become_it())
    };
    // SAFETY: rename(2), fsync(2) and execve(2) are safe after fork(2) in a process with threads:
    // signal-safety(7). syncfs(2) is one system call, too. The closure allocates nothing.
    unsafe { command.pre_exec(act) };
    Ok(())
}

/// The arguments of execve(2), built before fork(2).
struct Program {
    /// Paths to try.
    candidates: Vec<CString>,
    words: Strings,
    environment: Strings,
}

impl Program {
    fn of(command: &Command) -> Result<Self> {
        let mut environment: BTreeMap<_, _> = std::env::vars_os().collect();
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => drop(environment.insert(name.to_owned(), value.to_owned())),
                None => drop(environment.remove(name)),
            }
        }
        let program = command.get_program();
        let path = environment.get(OsStr::new("PATH"));
        let path = path.map_or(OsStr::new(USUAL), |path| path.as_os_str());
        let candidates = if program.as_bytes().contains(&b'/') {
            vec![c_string(program)?]
        } else {
            let found = std::env::split_paths(path).map(|directory| directory.join(program));
            found.map(|path| c_string(path.as_os_str())).collect::<Result<_>>()?
        };
        let words = std::iter::once(program).chain(command.get_args());
        let variables = environment.into_iter().map(|(name, value)| {
            let mut variable = name.into_vec();
            variable.push(b'=');
            variable.extend(value.into_vec());
            std::ffi::OsString::from_vec(variable)
        });
        Ok(Self {
            candidates,
            words: Strings::of(words.map(c_string).collect::<Result<_>>()?),
            environment: Strings::of(variables.map(|one| c_string(&one)).collect::<Result<_>>()?),
        })
    }

    /// Returns only on failure, with the first EACCES or else the last error.
    fn become_it(&self) -> io::Error {
        let (words, environment) = (self.words.pointers(), self.environment.pointers());
        let mut refused = None;
        for candidate in &self.candidates {
            // SAFETY: a string and two null-terminated lists, which live as long as this process.
            unsafe { libc::execve(candidate.as_ptr(), words, environment) };
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::ENOENT | libc::ENOTDIR) => {}
                Some(libc::EACCES) => drop(refused.get_or_insert(error)),
                _ => return error,
            }
        }
        refused.unwrap_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
    }
}

/// A list of C strings.
struct Strings {
    pointers: Vec<*const c_char>,
    _strings: Vec<CString>,
}

// SAFETY: the pointers lead to strings of the same value, which never change.
unsafe impl Send for Strings {}
// SAFETY: the pointers lead to strings of the same value, which never change.
unsafe impl Sync for Strings {}

impl Strings {
    fn of(strings: Vec<CString>) -> Self {
        let pointers = strings.iter().map(|string| string.as_ptr());
        Self { pointers: pointers.chain([std::ptr::null()]).collect(), _strings: strings }
    }

    fn pointers(&self) -> *const *const c_char {
        self.pointers.as_ptr()
    }
}

fn c_string(text: &OsStr) -> Result<CString> {
    let made = CString::new(text.as_bytes());
    with_context(made.map_err(io::Error::from), "name", Path::new(text))
}
