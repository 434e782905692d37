//! Removes files and directory trees. Never follows a symbolic link.

use std::fs;
use std::io;
use std::path::Path;

use super::attributes::set_mode;
use super::status::{Kind, kinds_in, names_in, status_of_name};
use crate::{Result, on};

/// Removes a file or a link.
pub fn remove_file(path: &Path) -> Result<()> {
    on(fs::remove_file(path), "remove", path)
}

/// The same, where it need not exist.
pub fn remove_if_present(path: &Path) -> Result<()> {
    match remove_file(path) {
        Err(error) if error.is_not_found() => Ok(()),
        removed => removed,
    }
}

/// Removes a directory, unless something is in it.
pub fn remove_empty(path: &Path) -> Result<()> {
    match fs::remove_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        removed => on(removed, "remove", path),
    }
}

/// Removes a directory with all that is in it; links are removed, not followed. Directories that
/// their owner had closed to himself are opened first.
pub fn remove_tree(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_to_owner(path)?;
            on(fs::remove_dir_all(path), "remove", path)
        }
        done => on(done, "remove", path),
    }
}

/// Removes all that is in a directory.
pub fn empty_directory(path: &Path) -> Result<()> {
    for (name, kind) in kinds_in(path)? {
        let path = path.join(name);
        if kind == Kind::Directory {
            remove_tree(&path)?;
        } else {
            remove_file(&path)?;
        }
    }
    Ok(())
}

fn open_to_owner(directory: &Path) -> Result<()> {
    set_mode(directory, 0o700)?;
    for name in names_in(directory)? {
        let path = directory.join(name);
        if status_of_name(&path)?.kind == Kind::Directory {
            open_to_owner(&path)?;
        }
    }
    Ok(())
}
