//! Renames files and directories.

use std::fs;
use std::path::Path;

use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;

use super::status::status_of_name;
use crate::{Result, on};

/// Renames; what stood at `to` is replaced.
pub fn rename(from: &Path, to: &Path) -> Result<()> {
    on(fs::rename(from, to), "rename to", to)
}

/// Renames a directory to a name that nothing has. A file system that cannot tell (NFS, Lustre) is asked before, so an
/// empty directory that gets the name in between is replaced there.
pub fn rename_directory_noreplace(from: &Path, to: &Path) -> Result<()> {
    match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => match status_of_name(to) {
            Err(error) if error.is_not_found() => rename(from, to),
            found => found.and_then(|_| on(Err(Errno::EXIST), "rename to", to)),
        },
        renamed => on(renamed, "rename to", to),
    }
}
