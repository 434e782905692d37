//! Files and directories.

mod attributes;
mod content;
mod direct;
mod directory;
mod json;
mod status;

pub use attributes::{
    ExtendedAttribute, extended_attributes, remove_extended_attribute, set_extended_attribute,
    set_mode_of, set_owner_of, set_owner_of_name, set_times, set_times_of,
};
pub use content::{
    data_from, forget, is_full, is_local, is_loop, is_over_quota, lock_made, make_hard_link,
    open_source, open_to_go_on, sync_file_system,
};
pub use direct::{DIRECT_BYTES, Direct};
pub use directory::Directory;
pub use json::{read_json, to_json, write_json};
pub use status::{Kind, Status};

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, RenameFlags};
use rustix::io::Errno;

use crate::{Result, on};
use status::BLOCK_BYTES;

/// Status of a name; a symbolic link is followed.
///
/// # Errors
/// As `stat(2)`.
pub fn status(path: &Path) -> Result<Status> {
    on(fs::metadata(path), "look at", path).map(|m| Status::from(&m))
}

/// Status of a name itself; a symbolic link is not followed.
///
/// # Errors
/// As `lstat(2)`.
pub fn status_of_name(path: &Path) -> Result<Status> {
    on(fs::symlink_metadata(path), "look at", path).map(|m| Status::from(&m))
}

/// Status of an open file.
///
/// # Errors
/// As `fstat(2)`; `path` only names the file in them.
pub fn status_of(file: &File, path: &Path) -> Result<Status> {
    on(file.metadata(), "look at", path).map(|m| Status::from(&m))
}

/// Names in a directory, sorted.
///
/// # Errors
/// As `opendir(3)` and `readdir(3)`.
pub fn names_in(directory: &Path) -> Result<Vec<OsString>> {
    let entries = on(fs::read_dir(directory), "list", directory)?;
    let names: io::Result<Vec<_>> = entries.map(|e| e.map(|e| e.file_name())).collect();
    let mut names = on(names, "list", directory)?;
    names.sort();
    Ok(names)
}

/// Names in a directory and what they stand for, without a look at the things themselves: one of
/// them may be a mount that does not answer.
///
/// # Errors
/// As `opendir(3)` and `readdir(3)`.
pub fn kinds_in(directory: &Path) -> Result<Vec<(OsString, Kind)>> {
    let entries = on(fs::read_dir(directory), "list", directory)?;
    let kinds = entries.map(|entry| {
        let entry = entry?;
        Ok((entry.file_name(), Kind::from(entry.file_type()?)))
    });
    on(kinds.collect::<io::Result<_>>(), "list", directory)
}

/// The whole text of a file.
///
/// # Errors
/// If it cannot be read or is not UTF-8.
pub fn read_to_string(path: &Path) -> Result<String> {
    on(fs::read_to_string(path), "read", path)
}

/// The whole content of a file.
///
/// # Errors
/// If it cannot be read.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    on(fs::read(path), "read", path)
}

/// The whole text of a file; what is not UTF-8 in it is replaced.
///
/// # Errors
/// If it cannot be read.
pub fn read_lossy(path: &Path) -> Result<String> {
    on(fs::read(path), "read", path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Target of a symbolic link.
///
/// # Errors
/// As `readlink(2)`.
pub fn read_link(path: &Path) -> Result<PathBuf> {
    on(fs::read_link(path), "read the link", path)
}

/// Makes a symbolic link.
///
/// # Errors
/// As `symlink(2)`.
pub fn make_link(target: &Path, path: &Path) -> Result<()> {
    on(
        std::os::unix::fs::symlink(target, path),
        "make the link",
        path,
    )
}

/// Makes one directory; an existing one is an error.
///
/// # Errors
/// As `mkdir(2)`.
pub fn make_directory(path: &Path, mode: u32) -> Result<()> {
    let made = fs::DirBuilder::new().mode(mode).create(path);
    on(made, "make the directory", path)
}

/// Makes a directory and all that lead to it; existing ones are kept. Returns those that were made,
/// parents first.
///
/// # Errors
/// As `mkdir(2)`.
pub fn make_directories(path: &Path, mode: u32) -> Result<Vec<PathBuf>> {
    let missing: Vec<_> = path
        .ancestors()
        .take_while(|ancestor| !ancestor.as_os_str().is_empty() && !ancestor.is_dir())
        .collect();
    let mut made = Vec::new();
    for directory in missing.into_iter().rev() {
        match make_directory(directory, mode) {
            Ok(()) => made.push(directory.to_owned()),
            // Another thread or job was faster.
            Err(error) if error.already_exists() && directory.is_dir() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(made)
}

/// Is this a directory of ours, no link, in which nobody else can put anything?
#[must_use]
pub fn is_ours_alone(directory: &Path) -> bool {
    const WRITE_OF_OTHERS: u32 = 0o022;
    fs::symlink_metadata(directory).is_ok_and(|found| {
        found.is_dir()
            && found.uid() == rustix::process::geteuid().as_raw()
            && found.mode() & WRITE_OF_OTHERS == 0
    })
}

/// Removes a file or a link.
///
/// # Errors
/// As `unlink(2)`.
pub fn remove_file(path: &Path) -> Result<()> {
    on(fs::remove_file(path), "remove", path)
}

/// The same, where it need not exist.
///
/// # Errors
/// As `unlink(2)`.
pub fn remove_if_present(path: &Path) -> Result<()> {
    match remove_file(path) {
        Err(error) if error.is_not_found() => Ok(()),
        removed => removed,
    }
}

/// Removes a directory, unless something is in it.
///
/// # Errors
/// As `rmdir(2)`.
pub fn remove_empty(path: &Path) -> Result<()> {
    match fs::remove_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        removed => on(removed, "remove", path),
    }
}

/// Removes a directory with all that is in it; links are removed, not followed. Directories that
/// their owner had closed to himself are opened first.
///
/// # Errors
/// As `unlink(2)` and `rmdir(2)`.
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
///
/// # Errors
/// As [`remove_tree`].
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

/// Bytes that a directory with all that is in it takes on its file system (`du`). What vanishes or is
/// closed to us meanwhile is not counted; hard links count once for each name.
#[must_use]
pub fn tree_bytes(path: &Path) -> u64 {
    let own = fs::symlink_metadata(path);
    let own = own.map_or(0, |found| found.blocks() * BLOCK_BYTES);
    let is_directory = status_of_name(path).is_ok_and(|status| status.kind == Kind::Directory);
    let names = if is_directory {
        names_in(path)
    } else {
        Ok(Vec::new())
    };
    let below = names.unwrap_or_default().into_iter();
    own + below.map(|name| tree_bytes(&path.join(name))).sum::<u64>()
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

/// Renames; what stood at `to` is replaced.
///
/// # Errors
/// As `rename(2)`.
pub fn rename(from: &Path, to: &Path) -> Result<()> {
    on(fs::rename(from, to), "rename to", to)
}

/// Renames a directory to a name that nothing has. A file system that cannot tell (NFS, Lustre) is asked before, so an
/// empty directory that gets the name in between is replaced there.
///
/// # Errors
/// As `renameat2(2)` with `RENAME_NOREPLACE`.
pub fn rename_directory_anew(from: &Path, to: &Path) -> Result<()> {
    match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => match status_of_name(to) {
            Err(error) if error.is_not_found() => rename(from, to),
            found => found.and_then(|_| on(Err(Errno::EXIST), "rename to", to)),
        },
        renamed => on(renamed, "rename to", to),
    }
}

/// The path with all links resolved.
///
/// # Errors
/// As `realpath(3)`.
pub fn real_path(path: &Path) -> Result<PathBuf> {
    on(fs::canonicalize(path), "find", path)
}

/// Opens a file to read.
///
/// # Errors
/// As `open(2)`.
pub fn open_to_read(path: &Path) -> Result<File> {
    on(File::open(path), "open", path)
}

/// Makes a new file to write; an existing one is an error.
///
/// # Errors
/// As `open(2)`.
pub fn make_file(path: &Path, mode: u32) -> Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode);
    on(options.open(path), "make", path)
}

/// Opens a file to write from its begin, made or emptied.
///
/// # Errors
/// As `open(2)`.
pub fn open_to_write(path: &Path) -> Result<File> {
    on(File::create(path), "open to write", path)
}

/// Opens a file to write at its end, made if it is not there.
///
/// # Errors
/// As `open(2)`.
pub fn open_to_append(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    on(
        options.append(true).create(true).open(path),
        "open to write",
        path,
    )
}

/// Writes a file so that whoever reads it sees it whole, before or after: under the name `fresh` beside
/// it, then renamed. Where that fails nothing new stays.
///
/// # Errors
/// As `open(2)`, `write(2)` and `rename(2)`.
pub fn write_whole(path: &Path, fresh: &Path, content: &[u8]) -> Result<()> {
    let mut file = open_to_write(fresh)?;
    let written = on(file.write_all(content), "write", fresh).and_then(|()| rename(fresh, path));
    if written.is_err() {
        fs::remove_file(fresh).ok(); // the first error is the one to tell
    }
    written
}

/// Locks a file against others who lock it, until the result is dropped or we end; none if somebody
/// has it. Where the file system has no locks, nothing is locked.
///
/// # Errors
/// As `open(2)` and `flock(2)`.
pub fn lock(path: &Path) -> Result<Option<File>> {
    let mut options = OpenOptions::new();
    let file = on(options.read(true).write(true).open(path), "open", path)?;
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(Errno::NOSYS | Errno::NOLCK | Errno::OPNOTSUPP) => Ok(Some(file)),
        locked => on(locked, "lock", path).map(|()| Some(file)),
    }
}

/// Opens files for standard output and standard error, made or emptied; one file if both are the
/// same.
///
/// # Errors
/// As `open(2)`.
pub fn open_streams(output: Option<&Path>, error: Option<&Path>) -> Result<[Option<File>; 2]> {
    let first = output.map(open_to_write).transpose()?;
    let second = match (&first, error) {
        (Some(file), Some(path)) if output == error => {
            Some(on(file.try_clone(), "open again", path)?)
        }
        (_, path) => path.map(open_to_write).transpose()?,
    };
    Ok([first, second])
}

/// Sets permission bits; a link is followed.
///
/// # Errors
/// As `chmod(2)`.
pub fn set_mode(path: &Path, mode: u32) -> Result<()> {
    let mode = Mode::from_raw_mode(mode);
    on(rustix::fs::chmod(path, mode), "set the mode of", path)
}

/// Makes the names in a directory survive a power cut. A directory that we may write but not read
/// cannot be opened for it: then all file systems are synced.
///
/// # Errors
/// As `fsync(2)`.
pub fn sync_directory(path: &Path) -> Result<()> {
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            rustix::fs::sync();
            Ok(())
        }
        opened => on(on(opened, "open", path)?.sync_all(), "sync", path),
    }
}

/// The real path of the nearest ancestor of `path` (or itself) that exists.
///
/// # Errors
/// As `realpath(3)`.
pub fn nearest_real_path(path: &Path) -> Result<PathBuf> {
    for ancestor in path.ancestors() {
        match real_path(ancestor) {
            Err(error) if error.is_not_found() => {}
            found => return found,
        }
    }
    Ok(PathBuf::from("/"))
}

/// The path with the links of what exists of it resolved.
///
/// # Errors
/// As `realpath(3)`.
pub fn final_path(path: &Path) -> Result<PathBuf> {
    for ancestor in path.ancestors() {
        match real_path(ancestor) {
            Err(error) if error.is_not_found() => {}
            found => {
                let rest = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
                let base = found?;
                // An empty rest would leave a slash at the end.
                return Ok(base.components().chain(rest.components()).collect());
            }
        }
    }
    Ok(path.to_owned())
}

/// Attaches operation and path to the error of a call on an open file.
///
/// # Errors
/// The given one, dressed.
pub fn named<T>(result: io::Result<T>, operation: &'static str, path: &Path) -> Result<T> {
    on(result, operation, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_its_owner_closed_is_removed_and_links_are_not_followed() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let tree = scratch.path().join("tree");
        let kept = scratch.path().join("kept");
        make_directories(&tree.join("a/b"), 0o755).expect("mkdir");
        make_directories(&kept, 0o755).expect("mkdir");
        make_link(&kept, &tree.join("a/link")).expect("link");
        set_mode(&tree.join("a/b"), 0o000).expect("chmod");
        remove_tree(&tree).expect("remove");
        assert!(status(&tree).expect_err("gone").is_not_found());
        assert_eq!(status(&kept).expect("kept").kind, Kind::Directory);
    }

    #[test]
    fn errors_name_operation_and_path() {
        let error = read_to_string(Path::new("/no/such")).expect_err("missing");
        assert_eq!(
            error.to_string(),
            "cannot read /no/such: No such file or directory (os error 2)"
        );
    }
}
