//! Renames files and directories.

use std::fs;
use std::path::Path;

use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;

use super::status::status_of_name;
use crate::{Result, on};

/// Renames a path, and replaces `to` if it exists.
pub fn rename(from: &Path, to: &Path) -> Result<()> {
    on(fs::rename(from, to), "rename to", to)
}

/// Renames a directory, and fails if `to` exists. Without kernel support (NFS, Lustre) the check
/// comes first: an empty directory created in between is replaced.
pub fn rename_directory_noreplace(from: &Path, to: &Path) -> Result<()> {
    match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => match status_of_name(to) {
            Err(error) if error.is_not_found() => rename(from, to),
            found => found.and_then(|_| on(Err(Errno::EXIST), "rename to", to)),
        },
        renamed => on(renamed, "rename to", to),
    }
}
