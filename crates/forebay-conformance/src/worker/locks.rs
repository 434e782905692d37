//! Locks, and the operations on mappings.
//! A lock with `wait` has no limit here: the coordinator ends a worker that does not answer.

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::{FlockOperation, flock};
use rustix::io::{self, Errno};

use super::maps::Mapping;
use super::names::last_errno;
use super::state::{Result, Worker, done, unknown};
use crate::bytes::Bytes;
use crate::operation::{Answer, Handle, Lock, Operation};

impl Worker {
    pub(super) fn execute_lock_or_map(&mut self, operation: &Operation) -> Result<Answer> {
        match operation {
            Operation::RecordLock { handle, lock, offset, bytes, wait } => {
                let command = if *wait { libc::F_SETLKW } else { libc::F_SETLK };
                record_lock(self.file(*handle)?, command, *lock, *offset, *bytes)?;
                Ok(Answer::Done)
            }
            Operation::RecordLockConflict { handle, lock, offset, bytes } => {
                let file = self.file(*handle)?;
                let found = record_lock(file, libc::F_GETLK, *lock, *offset, *bytes)?;
                Ok(Answer::Number(u64::from(i32::from(found.l_type) != libc::F_UNLCK)))
            }
            Operation::FileLock { handle, lock, wait } => {
                done(file_lock(self.file(*handle)?, *lock, *wait))
            }
            Operation::Map { handle, bytes, shared, writable } => {
                let mapping = Mapping::new(self.file(*handle)?, *bytes, *shared, *writable)?;
                let handle = self.new_handle();
                self.maps.insert(handle, mapping);
                Ok(Answer::Number(handle))
            }
            Operation::MapRead { handle, offset, bytes } => {
                let read = self.map(*handle)?.read(*offset, *bytes)?;
                Ok(Answer::Bytes(Bytes(read)))
            }
            Operation::MapWrite { handle, offset, data } => {
                done(self.map(*handle)?.write(*offset, &data.contents()))
            }
            Operation::MapSync { handle } => done(self.map(*handle)?.sync()),
            Operation::Unmap { handle } => {
                self.maps.remove(handle).map(|_| Answer::Done).ok_or_else(|| unknown(*handle))
            }
            _ => self.execute_on_name(operation),
        }
    }

    fn map(&self, handle: Handle) -> Result<&Mapping> {
        self.maps.get(&handle).ok_or_else(|| unknown(handle))
    }
}

/// fcntl(2) with a lock of `bytes` bytes (0: to the end of the file) from `offset` on.
pub(super) fn record_lock(
    file: BorrowedFd<'_>,
    command: i32,
    lock: Lock,
    offset: u64,
    bytes: u64,
) -> io::Result<libc::flock> {
    let kind = match lock {
        Lock::Shared => libc::F_RDLCK,
        Lock::Exclusive => libc::F_WRLCK,
        Lock::Release => libc::F_UNLCK,
    };
    let mut range = libc::flock {
        l_type: i16::try_from(kind).map_err(|_| Errno::INVAL)?,
        l_whence: 0, // SEEK_SET
        l_start: i64::try_from(offset).map_err(|_| Errno::OVERFLOW)?,
        l_len: i64::try_from(bytes).map_err(|_| Errno::OVERFLOW)?,
        l_pid: 0,
    };
    // SAFETY: an open file and a structure of the right type that lives until the call returns.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut range) } {
        -1 => Err(last_errno()),
        _ => Ok(range),
    }
}

/// flock(2).
pub(super) fn file_lock(file: BorrowedFd<'_>, lock: Lock, wait: bool) -> io::Result<()> {
    let operation = match (lock, wait) {
        (Lock::Shared, true) => FlockOperation::LockShared,
        (Lock::Shared, false) => FlockOperation::NonBlockingLockShared,
        (Lock::Exclusive, true) => FlockOperation::LockExclusive,
        (Lock::Exclusive, false) => FlockOperation::NonBlockingLockExclusive,
        (Lock::Release, _) => FlockOperation::Unlock,
    };
    flock(file, operation)
}
