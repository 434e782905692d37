//! Renames files and directories.

use std::fs;
use std::path::Path;

use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;

use super::status::status_of_name;
use crate::{Result, with_context};

/// Renames a path, and replaces `to` if it exists.
pub fn rename(from: &Path, to: &Path) -> Result<()> {
    with_context(fs::rename(from, to), "rename to", to)
}

/// Renames a directory, and fails if `to` exists. Without kernel support (NFS, Lustre) the check
/// comes first: an empty directory created in between is replaced.
pub fn rename_directory_noreplace(from: &Path, to: &Path) -> Result<()> {
    match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => match status_of_name(to) {
            Err(error) if error.is_not_found() => rename(from, to),
            found => found.and_then(|_| with_context(Err(Errno::EXIST), "rename to", to)),
        },
        renamed => with_context(renamed, "rename to", to),
    }
}

/// Renames a file, and fails if `to` exists. On a file system without hard links, as
/// [`rename_directory_noreplace`]: without kernel support a file created in between is replaced.
pub fn rename_file_noreplace(from: &Path, to: &Path) -> Result<()> {
    match rustix::fs::link(from, to) {
        Ok(()) => with_context(fs::remove_file(from), "remove", from),
        Err(
            Errno::PERM
            | Errno::INVAL
            | Errno::NOSYS
            | Errno::OPNOTSUPP
            | Errno::XDEV
            | Errno::MLINK,
        ) => rename_directory_noreplace(from, to),
        linked => with_context(linked, "rename to", to),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_file_is_not_replaced() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let [from, to] = ["from", "to"].map(|name| scratch.path().join(name));
        for renamed in [rename_file_noreplace, rename_directory_noreplace] {
            fs::write(&from, "new").expect("written");
            renamed(&from, &to).expect("renamed");
            fs::write(&from, "newer").expect("written");
            assert!(renamed(&from, &to).expect_err("it exists").already_exists());
            assert_eq!(fs::read_to_string(&to).expect("read"), "new");
            assert_eq!(fs::read_to_string(&from).expect("read"), "newer");
            fs::remove_file(&to).expect("removed");
        }
    }
}
