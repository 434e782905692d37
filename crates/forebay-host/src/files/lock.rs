//! Locks files with flock(2).

use std::fs::{File, OpenOptions};
use std::path::Path;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::create::make_file;
use crate::{Result, on};

/// Locks a file exclusively; none if another process holds the lock. Dropping the result releases
/// the lock. Locks nothing if the file system has no locks.
pub fn lock(path: &Path) -> Result<Option<File>> {
    let mut options = OpenOptions::new();
    let file = on(options.read(true).write(true).open(path), "open", path)?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(Errno::NOSYS | Errno::NOLCK | Errno::OPNOTSUPP) => Ok(Some(file)),
        locked => on(locked, "lock", path).map(|()| Some(file)),
    }
}

/// Creates the file if missing, and locks it as [`lock`] does.
pub fn lock_or_create(path: &Path) -> Result<Option<File>> {
    match make_file(path, 0o600) {
        Err(error) if error.already_exists() => {}
        Err(error) => return Err(error),
        Ok(_) => {}
    }
    lock(path)
}
