//! What `stat` says of files, and what directories list.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::{Result, on};

/// The type of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An ordinary file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A fifo, socket or device.
    Other,
}

impl From<fs::FileType> for Kind {
    fn from(found: fs::FileType) -> Self {
        match found {
            t if t.is_file() => Self::File,
            t if t.is_dir() => Self::Directory,
            t if t.is_symlink() => Self::Link,
            _ => Self::Other,
        }
    }
}

/// What `stat` says of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// File, directory, link or other.
    pub kind: Kind,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Permission bits, `0o7777` at most.
    pub mode: u32,
    /// Number of the user whose it is.
    pub owner: u32,
    /// Number of the group whose it is.
    pub group: u32,
    /// Number of its file system on this machine.
    pub device: u64,
    /// Its number in its file system.
    pub inode: u64,
    /// How many names it has.
    pub links: u64,
    /// Bytes that it takes on its file system; fewer than its size if it has holes.
    pub allocated_bytes: u64,
    /// Time of last access: seconds, nanoseconds.
    pub accessed: (i64, i64),
    /// Time of last modification: seconds, nanoseconds.
    pub modified: (i64, i64),
    /// Time of the last change of content, mode or name, which nobody can set: seconds, nanoseconds.
    pub changed: (i64, i64),
}

/// Unit of `st_blocks`, whatever the file system's own.
pub(super) const BLOCK_BYTES: u64 = 512;

impl Status {
    /// Are inode, size and modification time the same?
    pub fn is_same_content(&self, other: &Self) -> bool {
        let told = |status: &Self| (status.inode, status.size_bytes, status.modified);
        told(self) == told(other)
    }
}

impl From<&fs::Metadata> for Status {
    fn from(found: &fs::Metadata) -> Self {
        Self {
            kind: Kind::from(found.file_type()),
            size_bytes: found.len(),
            mode: found.mode() & 0o7777,
            owner: found.uid(),
            group: found.gid(),
            device: found.dev(),
            inode: found.ino(),
            links: found.nlink(),
            allocated_bytes: found.blocks() * BLOCK_BYTES,
            accessed: (found.atime(), found.atime_nsec()),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }
}

/// Status of a name; a symbolic link is followed.
pub fn status(path: &Path) -> Result<Status> {
    on(fs::metadata(path), "look at", path).map(|m| Status::from(&m))
}

/// Status of a name itself; a symbolic link is not followed.
pub fn status_of_name(path: &Path) -> Result<Status> {
    on(fs::symlink_metadata(path), "look at", path).map(|m| Status::from(&m))
}

/// Status of an open file.
pub fn status_of(file: &File, path: &Path) -> Result<Status> {
    on(file.metadata(), "look at", path).map(|m| Status::from(&m))
}

/// Names in a directory, sorted.
pub fn names_in(directory: &Path) -> Result<Vec<OsString>> {
    let entries = on(fs::read_dir(directory), "list", directory)?;
    let names: io::Result<Vec<_>> = entries.map(|e| e.map(|e| e.file_name())).collect();
    let mut names = on(names, "list", directory)?;
    names.sort();
    Ok(names)
}

/// Names in a directory and what they stand for, without a look at the things themselves: one of
/// them may be a mount that does not answer.
pub fn kinds_in(directory: &Path) -> Result<Vec<(OsString, Kind)>> {
    let entries = on(fs::read_dir(directory), "list", directory)?;
    let kinds = entries.map(|entry| {
        let entry = entry?;
        Ok((entry.file_name(), Kind::from(entry.file_type()?)))
    });
    on(kinds.collect::<io::Result<_>>(), "list", directory)
}

/// Is this a directory of ours, no link, in which nobody else can put anything?
pub fn is_private_dir(directory: &Path) -> bool {
    const WRITE_OF_OTHERS: u32 = 0o022;
    fs::symlink_metadata(directory).is_ok_and(|found| {
        found.is_dir()
            && found.uid() == rustix::process::geteuid().as_raw()
            && found.mode() & WRITE_OF_OTHERS == 0
    })
}

/// Files in a directory, and their bytes. What vanishes or is closed to this user is not counted.
pub fn tree_size(directory: &Path) -> (u64, u64) {
    let below = kinds_in(directory).unwrap_or_default().into_iter();
    let sizes = below.map(|(name, kind)| match kind {
        Kind::Directory => tree_size(&directory.join(name)),
        _ => (1, status_of_name(&directory.join(name)).map_or(0, |found| found.size_bytes)),
    });
    sizes.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

/// Bytes that a directory with all that is in it takes on its file system (`du`). What vanishes or is
/// closed to us meanwhile is not counted; hard links count once for each name.
pub fn tree_bytes(path: &Path) -> u64 {
    let own = fs::symlink_metadata(path);
    let own = own.map_or(0, |found| found.blocks() * BLOCK_BYTES);
    let is_directory = status_of_name(path).is_ok_and(|status| status.kind == Kind::Directory);
    let names = if is_directory { names_in(path) } else { Ok(Vec::new()) };
    let below = names.unwrap_or_default().into_iter();
    own + below.map(|name| tree_bytes(&path.join(name))).sum::<u64>()
}
