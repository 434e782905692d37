//! Tests what this machine allows.

use std::path::Path;

use rustix::fs::{Access, Mode, OFlags};

use crate::{Result, files, system, with_context};

/// Tests whether this user can open a device to read and write, if opening does not change it.
pub fn check_open_rw(path: &Path) -> Result<()> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    with_context(rustix::fs::open(path, flags, Mode::empty()), "open", path).map(drop)
}

/// Tests whether this user may create names in the directory.
pub fn check_write(directory: &Path) -> Result<()> {
    let may = rustix::fs::access(directory, Access::WRITE_OK | Access::EXEC_OK);
    with_context(may, "write in", directory)
}

/// Tests whether this user may run the program in this directory. Searches `$PATH` for names
/// without a slash. Does not test the file format.
pub fn check_exec(program: &Path, directory: &Path) -> Result<()> {
    let name = program.to_str().filter(|name| !name.contains('/'));
    let found = name.and_then(system::find_other_program);
    let path = found.unwrap_or_else(|| directory.join(program));
    with_context(rustix::fs::access(&path, Access::EXEC_OK), "run", program)
}

/// A kernel setting in /proc/sys or /sys; none if this kernel does not have it.
pub fn read_sysctl(path: &str) -> Option<String> {
    let text = files::read_to_string(Path::new(path)).ok()?;
    Some(text.trim().to_owned())
}

/// Why this process and those that it starts cannot mount through a setuid program; none if they can.
pub fn no_setuid_mounts() -> Option<&'static str> {
    use rustix::thread::{CapabilitySet, capability_is_in_bounding_set, no_new_privs};
    if no_new_privs().unwrap_or(false) {
        return Some("this process may start no setuid program (NoNewPrivileges)");
    }
    let can_mount = capability_is_in_bounding_set(CapabilitySet::SYS_ADMIN).unwrap_or(true);
    (!can_mount).then_some("this process cannot have CAP_SYS_ADMIN")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unopenable_path_is_reported() {
        assert!(check_open_rw(Path::new("/dev/null")).is_ok());
        assert!(check_write(Path::new("/no/such")).is_err());
        assert_eq!(read_sysctl("/proc/sys/no/such"), None);
    }
}
