//! Creates files, directories and links, and opens files for writing. The umask limits each mode.
//! Assumes one writer for each temporary file of `write_atomically`.
//! Only [`write_atomically_as`] syncs: a caller that needs another file after a power failure syncs it.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::attributes::set_mode_of;
use super::rename::rename;
use super::resolve::parent_of;
use super::sync::sync_directory;
use crate::{Result, with_context};

/// Creates a symbolic link.
pub fn make_link(target: &Path, path: &Path) -> Result<()> {
    with_context(std::os::unix::fs::symlink(target, path), "make the link", path)
}

/// Creates a hard link to an existing file.
pub fn make_hard_link(existing: &Path, path: &Path) -> Result<()> {
    with_context(fs::hard_link(existing, path), "make the hard link", path)
}

/// Creates one directory. An existing path is an error.
pub fn make_directory(path: &Path, mode: u32) -> Result<()> {
    let made = fs::DirBuilder::new().mode(mode).create(path);
    with_context(made, "make the directory", path)
}

/// Creates a directory and its missing parents. Returns the created directories, parents first.
pub fn make_directories(path: &Path, mode: u32) -> Result<Vec<PathBuf>> {
    let missing: Vec<_> = path
        .ancestors()
        .take_while(|ancestor| !ancestor.as_os_str().is_empty() && !ancestor.is_dir())
        .collect();
    let mut made = Vec::new();
    for directory in missing.into_iter().rev() {
        match make_directory(directory, mode) {
            Ok(()) => made.push(directory.to_owned()),
            // Another thread or process created it first.
            Err(error) if error.already_exists() && directory.is_dir() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(made)
}

/// Creates a new file for writing. An existing path is an error.
pub fn make_file(path: &Path, mode: u32) -> Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode);
    with_context(options.open(path), "make", path)
}

/// Creates or truncates a file, and opens it for writing.
pub fn open_to_write(path: &Path) -> Result<File> {
    with_context(File::create(path), "open to write", path)
}

/// Opens an existing file for writing. Does not follow symbolic links, and does not wait at a fifo.
pub fn open_existing_rw(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    with_context(options.open(path), "open", path)
}

/// Opens a file for writing, and creates it if missing. Does not follow symbolic links.
pub fn open_or_make(path: &Path, mode: u32) -> Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(mode).custom_flags(libc::O_NOFOLLOW);
    with_context(options.open(path), "open to write", path)
}

/// Opens a file for appending, and creates it if missing.
pub fn open_to_append(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    with_context(options.append(true).create(true).open(path), "open to write", path)
}

/// Creates or truncates files for standard output and standard error. Equal paths share one file.
pub fn open_streams(output: Option<&Path>, error: Option<&Path>) -> Result<[Option<File>; 2]> {
    let first = output.map(open_to_write).transpose()?;
    let second = match (&first, error) {
        (Some(file), Some(path)) if output == error => {
            Some(with_context(file.try_clone(), "open again", path)?)
        }
        (_, path) => path.map(open_to_write).transpose()?,
    };
    Ok([first, second])
}

/// Writes the content to `fresh` in the same directory and renames it. Readers see either the old
/// or the complete new file. Replaces what has the name `fresh`, and follows no link there: others may
/// write the directory. Removes `fresh` on failure.
pub fn write_atomically(path: &Path, fresh: &Path, content: &[u8]) -> Result<()> {
    write_with(path, fresh, content, |_| Ok(()))
}

/// As [`write_atomically`], with this mode, whatever the umask; the file survives a power failure.
pub fn write_atomically_as(path: &Path, fresh: &Path, content: &[u8], mode: u32) -> Result<()> {
    let finish = |file: &File| {
        set_mode_of(file, fresh, mode)?;
        with_context(file.sync_all(), "sync", fresh)
    };
    write_with(path, fresh, content, finish)?;
    sync_directory(parent_of(path))
}

fn write_with(
    path: &Path,
    fresh: &Path,
    content: &[u8],
    finish: impl FnOnce(&File) -> Result<()>,
) -> Result<()> {
    let mut file = match make_file(fresh, 0o666) {
        Err(error) if error.already_exists() => {
            with_context(fs::remove_file(fresh), "remove", fresh)?;
            make_file(fresh, 0o666)?
        }
        made => made?,
    };
    let written = with_context(file.write_all(content), "write", fresh)
        .and_then(|()| finish(&file))
        .and_then(|()| rename(fresh, path));
    if written.is_err() {
        fs::remove_file(fresh).ok(); // the caller gets the first error
    }
    written
}
