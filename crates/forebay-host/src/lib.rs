//! Wraps the operating system: only this crate uses files, processes, signals and the clock. Unless
//! documented otherwise, functions return the error of their system call, with operation and path.
//! Assumes Linux. Never prints, and never decides what happens after an error.
#![allow(clippy::disallowed_methods)] // other crates must not use them

pub mod cgroup;
pub mod clock;
pub mod close_watch;
pub mod directory_lock;
pub mod disks;
pub mod exit_codes;
pub mod files;
pub mod filesystem;
pub mod fuse;
pub mod lustre;
pub mod memory;
pub mod messages;
pub mod mounts;
pub mod namespace;
pub mod network;
pub mod priority;
pub mod probe;
pub mod process;
pub mod socket;
pub mod state;
pub mod system;
pub mod tcp;
pub mod threads;
pub mod users;

use std::io;
use std::path::{Path, PathBuf};

/// A failed operation of the operating system.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {}: {source}", files::printable(path))]
pub struct Error {
    /// The operation, as a verb: "read", "create directory".
    pub operation: &'static str,
    /// The path it used.
    pub path: PathBuf,
    /// The error of the system call.
    pub source: io::Error,
}

impl Error {
    /// Whether the path does not exist.
    pub fn is_not_found(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }

    /// Whether the path does not exist or a parent is not a directory.
    pub fn is_absent(&self) -> bool {
        self.is_not_found() || self.source.kind() == io::ErrorKind::NotADirectory
    }

    /// Whether the permission is missing.
    pub fn is_denied(&self) -> bool {
        self.source.kind() == io::ErrorKind::PermissionDenied
    }

    /// Whether only the owner, or root, may do it (EPERM).
    pub fn is_not_permitted(&self) -> bool {
        self.source.raw_os_error() == Some(libc::EPERM)
    }

    /// A remedy, if the error alone shows one.
    pub fn hint(&self) -> Option<&'static str> {
        match self.operation {
            threads::START => Some(
                "end some of your processes, or raise the limit of their number: ulimit -u, pids.max of the cgroup",
            ),
            _ => self.is_not_found().then_some("check the path"),
        }
    }

    /// Whether the path exists already.
    pub fn already_exists(&self) -> bool {
        self.source.kind() == io::ErrorKind::AlreadyExists
    }
}

/// The result of an operation of the operating system.
pub type Result<T> = std::result::Result<T, Error>;

/// Adds operation and path to an `io::Error`.
pub(crate) fn with_context<T>(
    result: std::result::Result<T, impl Into<io::Error>>,
    operation: &'static str,
    path: &Path,
) -> Result<T> {
    result.map_err(|source| Error { operation, path: path.to_owned(), source: source.into() })
}
