//! What a process does before it becomes its program.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, c_char};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::{Result, on};

/// Where programs are looked for if there is no PATH: execvp(3).
const USUAL: &str = "/bin:/usr/bin";

/// Has it rename a file as the last thing before it becomes its program: whenever we are killed, either both will
/// have happened or neither. To be called when all else of the command is set. What is no program is none, where
/// execvp(3), which a command else uses after such an act, would give it to a shell.
///
/// # Errors
/// If a path or a word has a zero byte.
pub fn rename_before_exec(command: &mut Command, from: &Path, to: &Path) -> Result<()> {
    let (from, to) = (c_string(from.as_os_str())?, c_string(to.as_os_str())?);
    let program = Program::of(command)?;
    let act = move || {
        rustix::fs::rename(from.as_c_str(), to.as_c_str())?;
        Err(program.become_it())
    };
    // SAFETY: rename(2) and execve(2) are safe after fork(2) in a process with threads: signal-safety(7). Nothing is
    // allocated.
    unsafe { command.pre_exec(act) };
    Ok(())
}

/// All that execve(2) needs, made before fork(2).
struct Program {
    /// Where it may be.
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

    /// Returns only if it cannot: why not, of the first candidate that is there.
    fn become_it(&self) -> io::Error {
        let (words, environment) = (self.words.pointers(), self.environment.pointers());
        let mut refused = None;
        for candidate in &self.candidates {
            // SAFETY: a string and two lists of strings that end with null and live as long as this process.
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

/// A list of strings as C has it.
struct Strings {
    pointers: Vec<*const c_char>,
    _strings: Vec<CString>,
}

// SAFETY: the pointers lead into the strings of the same list, which nobody changes.
unsafe impl Send for Strings {}
// SAFETY: as above.
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
    on(made.map_err(io::Error::from), "name", Path::new(text))
}
