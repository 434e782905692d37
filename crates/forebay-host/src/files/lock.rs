//! Locks files with flock(2).
//!
//! Who works on a file locks it exclusively. Who only asks whether somebody does takes a shared
//! lock for a moment: questions do not see each other, and [`lock`] waits until they end.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::time::Duration;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::create::make_file;
use super::status::{status, status_of};
use crate::{Result, clock, with_context};

/// How long [`lock`] waits for other processes that hold shared locks.
const SHARED_MAX: Duration = Duration::from_secs(10);

/// Interval between two tries.
const INTERVAL: Duration = Duration::from_millis(1);

/// Locks a file exclusively; none if another process has locked it so. Dropping the result releases
/// the lock. Locks nothing if the file system has no locks.
pub fn lock(path: &Path) -> Result<Option<File>> {
    let deadline = clock::now() + SHARED_MAX;
    loop {
        let file = open(path)?;
        while !take(&file, FlockOperation::NonBlockingLockExclusive, path)? {
            if !take(&file, FlockOperation::NonBlockingLockShared, path)? || clock::now() > deadline
            {
                return Ok(None);
            }
            take(&file, FlockOperation::Unlock, path)?;
            clock::sleep(INTERVAL);
        }
        if has_name(&file, path)? {
            return Ok(Some(file));
        }
    }
}

/// Whether the file was not replaced since it was opened.
fn has_name(file: &File, path: &Path) -> Result<bool> {
    let (opened, named) = (status_of(file, path)?, status(path)?);
    Ok((opened.device, opened.inode) == (named.device, named.inode))
}

/// Creates the file if missing, and locks it as [`lock`] does.
pub fn lock_or_create(path: &Path) -> Result<Option<File>> {
    loop {
        match make_file(path, 0o600) {
            Err(error) if error.already_exists() => {}
            Err(error) => return Err(error),
            Ok(_) => {}
        }
        match lock(path) {
            // The former holder has removed it meanwhile.
            Err(error) if error.is_not_found() => {}
            locked => return locked,
        }
    }
}

/// Does a process hold the lock of this file? False if the file system has no locks.
pub fn is_locked(path: &Path) -> Result<bool> {
    Ok(!take(&open(path)?, FlockOperation::NonBlockingLockShared, path)?)
}

/// Opens for writing too: NFS gives exclusive locks only for such files.
fn open(path: &Path) -> Result<File> {
    with_context(OpenOptions::new().read(true).write(true).open(path), "open", path)
}

/// False if another process holds a lock that excludes this one.
fn take(file: &File, operation: FlockOperation, path: &Path) -> Result<bool> {
    match rustix::fs::flock(file, operation) {
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(Errno::NOSYS | Errno::NOLCK | Errno::OPNOTSUPP) => Ok(true),
        locked => with_context(locked, "lock", path).map(|()| true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_that_replaces_a_locked_one_is_locked_by_the_next() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let (path, next) = (scratch.path().join("file"), scratch.path().join("next"));
        let first = lock_or_create(&path).expect("lock").expect("free");
        let opened_before = open(&path).expect("open");
        let second = lock_or_create(&next).expect("lock").expect("free");
        std::fs::rename(&next, &path).expect("rename");
        assert!(!has_name(&opened_before, &path).expect("look"));
        drop(first);
        assert!(lock(&path).expect("lock").is_none(), "the one that replaced it is locked");
        drop(second);
        assert!(lock(&path).expect("lock").is_some());
    }

    #[test]
    fn lock_waits_for_those_who_ask_and_not_for_its_holder() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let path = scratch.path().join("file");
        let held = lock_or_create(&path).expect("lock").expect("free");
        assert!(is_locked(&path).expect("question"));
        assert!(lock(&path).expect("lock").is_none());
        drop(held);
        let question = open(&path).expect("open");
        assert!(take(&question, FlockOperation::NonBlockingLockShared, &path).expect("lock"));
        assert!(!is_locked(&path).expect("questions do not see each other"));
        let waiting = crate::threads::spawn(move || lock(&path).map(|held| held.is_some()));
        clock::sleep(10 * INTERVAL);
        drop(question);
        let taken = waiting.expect("thread").join().expect("no panic");
        assert!(taken.expect("lock"), "it waited");
    }
}
