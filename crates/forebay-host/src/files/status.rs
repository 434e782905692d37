//! What `stat` says of a file. Plain data; never asks the file system itself.

use std::fs;
use std::os::unix::fs::MetadataExt;

/// What a name stands for.
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
    /// As far as a look can tell: the same file, its size and its time of modification are the same.
    #[must_use]
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
