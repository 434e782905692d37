//! What a process does before it becomes its program.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::{Result, on};

/// Has it rename a file as the last thing before it becomes its program: whenever we are killed, either both will
/// have happened or neither.
///
/// # Errors
/// If a path has a zero byte.
pub fn renames_first(command: &mut Command, from: &Path, to: &Path) -> Result<()> {
    let name = |path: &Path| {
        let name = CString::new(path.as_os_str().as_bytes());
        on(name.map_err(std::io::Error::from), "name", path)
    };
    let (from, to) = (name(from)?, name(to)?);
    let rename = move || Ok(rustix::fs::rename(from.as_c_str(), to.as_c_str())?);
    // SAFETY: rename(2) is safe after fork(2) in a process with threads: signal-safety(7). Nothing is allocated.
    unsafe { command.pre_exec(rename) };
    Ok(())
}
