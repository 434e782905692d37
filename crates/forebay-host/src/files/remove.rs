//! Removes files and directory trees. Never follows a symbolic link.

use std::fs;
use std::io;
use std::path::Path;

use super::attributes::set_mode;
use super::directory::Directory;
use super::status::{Kind, kinds_in, names_in, status_of_name};
use crate::{Result, on};

/// Removes a file or a symbolic link.
pub fn remove_file(path: &Path) -> Result<()> {
    on(fs::remove_file(path), "remove", path)
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
        removed => on(removed, "remove", path),
    }
}

/// Removes a directory tree. Removes symbolic links without following them. If permissions prevent
/// it, adds the owner's permissions to the directories and retries.
pub fn remove_tree(path: &Path) -> Result<()> {
    match remove_all(path) {
        Err(error) if error.is_denied() => {
            open_to_owner(path)?;
            remove_all(path)
        }
        done => done,
    }
}

fn remove_all(path: &Path) -> Result<()> {
    if status_of_name(path)?.kind != Kind::Directory {
        return remove_file(path);
    }
    Directory::open_itself(path)?.clear()?;
    on(fs::remove_dir(path), "remove", path)
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
