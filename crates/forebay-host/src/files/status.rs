//! Reads file status and lists directories. Only the path of a call may lead through a link, never a name in a tree.
//! Sizes of trees are never errors: they leave out what cannot be read.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{AtFlags, FileType, StatxFlags};

use super::directory::Directory;
use crate::{Result, clock, with_context};

/// The type of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
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

/// The status of a file, from `stat(2)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// The type: file, directory, link or other.
    pub kind: Kind,
    /// Size in bytes.
    pub size_bytes: u64,
    /// The permission bits, at most `0o7777`.
    pub mode: u32,
    /// The user ID of the owner.
    pub owner: u32,
    /// The group ID.
    pub group: u32,
    /// The device number of the file system.
    pub device: u64,
    /// The inode number.
    pub inode: u64,
    /// The number of hard links.
    pub links: u64,
    /// The space used on the file system, in bytes. Holes use none.
    pub allocated_bytes: u64,
    /// Time of last access: seconds, nanoseconds.
    pub accessed: (i64, i64),
    /// Time of last modification: seconds, nanoseconds.
    pub modified: (i64, i64),
    /// Time of last change of content or inode, which no user can set: seconds, nanoseconds.
    pub changed: (i64, i64),
}

/// The unit of `st_blocks` on all file systems.
pub(super) const BLOCK_BYTES: u64 = 512;

impl Status {
    /// Whether inode, size and modification time are equal.
    pub fn is_same_content(&self, other: &Self) -> bool {
        let content = |status: &Self| (status.inode, status.size_bytes, status.modified);
        content(self) == content(other)
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

/// What tells a file from all others, while it exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The device number of the file system, major and minor.
    pub device: (u32, u32),
    /// The inode number.
    pub inode: u64,
    /// Whether it is a symbolic link.
    pub is_link: bool,
}

/// The identity of an open file. Asks no server.
pub fn identity_of(file: &File, path: &Path) -> Result<Identity> {
    with_context(identity(file, "", AtFlags::EMPTY_PATH), "look at", path)
}

pub(super) fn identity(
    directory: impl AsFd,
    name: impl rustix::path::Arg,
    how: AtFlags,
) -> rustix::io::Result<Identity> {
    let known = how | AtFlags::SYMLINK_NOFOLLOW | AtFlags::STATX_DONT_SYNC;
    let found = rustix::fs::statx(directory, name, known, StatxFlags::TYPE | StatxFlags::INO)?;
    Ok(Identity {
        device: (found.stx_dev_major, found.stx_dev_minor),
        inode: found.stx_ino,
        is_link: FileType::from_raw_mode(found.stx_mode.into()) == FileType::Symlink,
    })
}

/// The status of a path. Follows symbolic links.
pub fn status(path: &Path) -> Result<Status> {
    with_context(fs::metadata(path), "look at", path).map(|m| Status::from(&m))
}

/// The status of a name. Does not follow symbolic links.
pub fn status_of_name(path: &Path) -> Result<Status> {
    with_context(fs::symlink_metadata(path), "look at", path).map(|m| Status::from(&m))
}

/// The status of an open file.
pub fn status_of(file: &File, path: &Path) -> Result<Status> {
    with_context(file.metadata(), "look at", path).map(|m| Status::from(&m))
}

/// The names in a directory, sorted.
pub fn names_in(directory: &Path) -> Result<Vec<OsString>> {
    Directory::open(directory)?.names()
}

/// The names and types in a directory. Does not call `stat` on them, because one may be a mount
/// that does not respond.
pub fn kinds_in(directory: &Path) -> Result<Vec<(OsString, Kind)>> {
    Directory::open(directory)?.kinds()
}

/// Whether this is a directory, not a link, that only this user owns and can write to.
pub fn is_private_dir(directory: &Path) -> bool {
    const WRITE_OF_OTHERS: u32 = 0o022;
    fs::symlink_metadata(directory).is_ok_and(|found| {
        found.is_dir()
            && found.uid() == rustix::process::geteuid().as_raw()
            && found.mode() & WRITE_OF_OTHERS == 0
    })
}

/// The number and total bytes of files in a directory tree. Omits unreadable and vanished files.
pub fn tree_size(directory: &Path) -> (u64, u64) {
    let below = kinds_in(directory).unwrap_or_default().into_iter();
    let sizes = below.map(|(name, kind)| match kind {
        Kind::Directory => tree_size(&directory.join(name)),
        _ => (1, status_of_name(&directory.join(name)).map_or(0, |found| found.size_bytes)),
    });
    sizes.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

/// The space that a directory tree uses on its file system (`du`), in bytes. Omits unreadable and
/// vanished paths. Counts each hard link.
pub fn tree_bytes(path: &Path) -> u64 {
    tree_bytes_within(path, Duration::MAX).0
}

/// [`tree_bytes`] of what is seen in this time, and whether that is the whole tree.
pub fn tree_bytes_within(path: &Path, time_max: Duration) -> (u64, bool) {
    let began = clock::now();
    let mut bytes = 0;
    let is_whole = add_tree_bytes(path, &|| began.elapsed() < time_max, &mut bytes);
    (bytes, is_whole)
}

fn add_tree_bytes(path: &Path, has_time: &dyn Fn() -> bool, bytes: &mut u64) -> bool {
    if !has_time() {
        return false;
    }
    let own = fs::symlink_metadata(path);
    *bytes += own.map_or(0, |found| found.blocks() * BLOCK_BYTES);
    let is_directory = status_of_name(path).is_ok_and(|status| status.kind == Kind::Directory);
    let names = if is_directory { names_in(path) } else { Ok(Vec::new()) };
    let mut below = names.unwrap_or_default().into_iter();
    below.all(|name| add_tree_bytes(&path.join(name), has_time, bytes))
}
