//! Trying out what this machine allows.

use std::path::Path;

use rustix::fs::{Access, Mode, OFlags};

use crate::{Result, files, on, system};

/// Can this user open it to read and write? For devices whose opening changes nothing.
pub fn can_open_rw(path: &Path) -> Result<()> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    on(rustix::fs::open(path, flags, Mode::empty()), "open", path).map(drop)
}

/// May this user make names in the directory?
pub fn can_write(directory: &Path) -> Result<()> {
    let may = rustix::fs::access(directory, Access::WRITE_OK | Access::EXEC_OK);
    on(may, "write in", directory)
}

/// May this user run the program in this directory? It is sought in `$PATH` if it has no slash. What kind of
/// file it is only running it tells.
pub fn can_exec(program: &Path, directory: &Path) -> Result<()> {
    let name = program.to_str().filter(|name| !name.contains('/'));
    let found = name.and_then(system::find_other_program);
    let path = found.unwrap_or_else(|| directory.join(program));
    on(rustix::fs::access(&path, Access::EXEC_OK), "run", program)
}

/// A setting of the kernel, as /proc/sys and /sys show it; `None` if this kernel has no such.
pub fn read_sysctl(path: &str) -> Option<String> {
    let text = files::read_to_string(Path::new(path)).ok()?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_not_be_opened_is_said() {
        assert!(can_open_rw(Path::new("/dev/null")).is_ok());
        assert!(can_write(Path::new("/no/such")).is_err());
        assert_eq!(read_sysctl("/proc/sys/no/such"), None);
    }
}
