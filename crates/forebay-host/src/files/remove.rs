//! Removes files and directory trees. Never removes what a symbolic link leads to.
//! Others may rename in the tree meanwhile. Trees of other users, root removes by `Directory::clear_as_root`.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, Dir, Mode, OFlags, access};
use rustix::io::Errno;

use super::directory::Directory;
use super::status::{Kind, Status, kinds_in, status_of_name};
use crate::{Result, users, with_context};

/// Removes a file or a symbolic link.
pub fn remove_file(path: &Path) -> Result<()> {
    with_context(fs::remove_file(path), "remove", path)
}

/// Removes a file or a symbolic link. A missing path is no error.
pub fn remove_if_present(path: &Path) -> Result<()> {
    match remove_file(path) {
        Err(error) if error.is_not_found() => Ok(()),
        removed => removed,
    }
}

/// Removes a directory if it is empty.
pub fn remove_empty(path: &Path) -> Result<()> {
    match fs::remove_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        removed => with_context(removed, "remove", path),
    }
}

/// Removes a directory tree. Removes symbolic links without following them. If permissions prevent
/// it, adds the owner's permissions to the directories of this user and retries.
pub fn remove_tree(path: &Path) -> Result<()> {
    as_owner(path, remove_all)
}

/// Removes all that is in a directory, as [`remove_tree`] does.
pub fn empty_directory(path: &Path) -> Result<()> {
    as_owner(path, clear)
}

fn as_owner(path: &Path, remove: fn(&Path) -> Result<()>) -> Result<()> {
    match remove(path) {
        Err(error) if error.is_denied() => {
            open_to_owner(path)?;
            remove(path)
        }
        done => done,
    }
}

fn clear(directory: &Path) -> Result<()> {
    Directory::open_itself(directory)?.clear()
}

fn remove_all(path: &Path) -> Result<()> {
    if status_of_name(path)?.kind != Kind::Directory {
        return remove_file(path);
    }
    clear(path)?;
    with_context(fs::remove_dir(path), "remove", path)
}

/// A directory in the tree that belongs to another user, who does not let this one remove what is in it.
/// What vanishes meanwhile is none.
pub fn directory_kept_by_another(tree: &Path) -> Result<Option<PathBuf>> {
    match kept_in(tree) {
        Err(error) if error.is_not_found() => Ok(None),
        found => found,
    }
}

fn kept_in(directory: &Path) -> Result<Option<PathBuf>> {
    let status = status_of_name(directory)?;
    let is_others = !is_ours(&status);
    let entries = match kinds_in(directory) {
        Err(error) if error.is_denied() => return Ok(is_others.then(|| directory.to_owned())),
        entries => entries?,
    };
    let may = access(directory, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK).is_ok();
    let is_sticky = status.mode & 0o1000 != 0;
    if is_others && !entries.is_empty() && (!may || is_sticky) {
        return Ok(Some(directory.to_owned()));
    }
    for (name, _) in entries.into_iter().filter(|(_, kind)| *kind == Kind::Directory) {
        if let Some(kept) = directory_kept_by_another(&directory.join(name))? {
            return Ok(Some(kept));
        }
    }
    Ok(None)
}

fn is_ours(status: &Status) -> bool {
    users::is_root() || status.owner == users::user_id()
}

/// Gives the owner all rights to a directory of this user and to those below it. Others may rename in the tree
/// meanwhile: each directory is looked up in the open one above it, and no link is followed.
fn open_to_owner(path: &Path) -> Result<()> {
    let how = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = with_context(rustix::fs::open(path, how, Mode::empty()), "open", path)?;
    open_level(&opened, path)
}

fn open_level(directory: &OwnedFd, path: &Path) -> Result<()> {
    let status = Status::from(&with_context(rustix::fs::fstat(directory), "look at", path)?);
    if is_ours(&status) && status.mode & 0o700 != 0o700 {
        let itself = format!("/proc/self/fd/{}", directory.as_raw_fd());
        let mode = Mode::from_raw_mode(status.mode | 0o700);
        with_context(rustix::fs::chmod(itself, mode), "set the mode of", path)?;
    }
    let how = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let list = rustix::fs::openat(directory, ".", how | OFlags::RDONLY, Mode::empty());
    for entry in with_context(Dir::new(with_context(list, "list", path)?), "list", path)? {
        let entry = with_context(entry, "list", path)?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        match rustix::fs::openat(directory, name, how | OFlags::PATH, Mode::empty()) {
            Err(Errno::NOTDIR | Errno::LOOP | Errno::NOENT) => {} // no directory, or gone
            opened => {
                let below = path.join(OsStr::from_bytes(name.to_bytes()));
                open_level(&with_context(opened, "open", &below)?, &below)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads;

    /// A library may remove its own files while the job's allocation is removed.
    #[test]
    fn what_others_remove_meanwhile_is_no_error() {
        let scratch = tempfile::tempdir_in("/dev/shm").expect("tempdir");
        let path = |number: u32| scratch.path().join(number.to_string());
        for _ in 0..20 {
            for number in 0..200 {
                fs::write(path(number), "").expect("write");
                fs::create_dir(path(200 + number)).expect("make");
            }
            std::thread::scope(|scope| {
                let other = || {
                    for number in (0..200).rev() {
                        fs::remove_dir(path(200 + number)).ok();
                        fs::remove_file(path(number)).ok();
                    }
                };
                threads::spawn_scoped(scope, other).expect("thread");
                empty_directory(scratch.path()).expect("removal");
            });
        }
    }
}
