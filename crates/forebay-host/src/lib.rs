//! Calls of the operating system: only this crate touches files, processes, signals and the clock.
//! Unless it says more, a function fails as the system call does that it makes; the error names operation and path.
#![allow(clippy::disallowed_methods)] // this is the room in which they are allowed

pub mod clock;
pub mod close_watch;
pub mod directory_lock;
pub mod disks;
pub mod files;
pub mod filesystem;
pub mod lustre;
pub mod memory;
pub mod messages;
pub mod mounts;
pub mod namespace;
pub mod priority;
pub mod probe;
pub mod process;
pub mod socket;
pub mod state;
pub mod system;
pub mod users;

use std::io;
use std::path::{Path, PathBuf};

/// An operation of the machine that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {}: {source}", path.display())]
pub struct Error {
    /// What was tried, as a verb: "read", "create directory".
    pub operation: &'static str,
    /// On what.
    pub path: PathBuf,
    /// The system's answer.
    pub source: io::Error,
}

impl Error {
    /// Was it that the thing does not exist?
    pub fn is_not_found(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }

    /// Was it that the thing does not exist, or that a parent is not a directory?
    pub fn is_absent(&self) -> bool {
        self.is_not_found() || self.source.kind() == io::ErrorKind::NotADirectory
    }

    /// Was it that we may not?
    pub fn is_denied(&self) -> bool {
        self.source.kind() == io::ErrorKind::PermissionDenied
    }

    /// What to do about it, where the error alone says it.
    pub fn hint(&self) -> Option<&'static str> {
        self.is_not_found().then_some("check the path")
    }

    /// Was it that something of that name exists?
    pub fn already_exists(&self) -> bool {
        self.source.kind() == io::ErrorKind::AlreadyExists
    }
}

/// Result of an operation of the machine.
pub type Result<T> = std::result::Result<T, Error>;

/// Turns an `io::Error` into an [`Error`] that names operation and path.
pub(crate) fn on<T>(
    result: std::result::Result<T, impl Into<io::Error>>,
    operation: &'static str,
    path: &Path,
) -> Result<T> {
    result.map_err(|source| Error { operation, path: path.to_owned(), source: source.into() })
}
