//! What a worker has open.
//! The start of a trial and the end of the worker close all of it and kill the children. A handle is never used
//! twice.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::Dir;
use rustix::io::Errno;

use super::child::Child;
use super::maps::Mapping;
use crate::bytes::Bytes;
use crate::operation::{Answer, Handle};

/// Why an operation has no answer.
#[derive(Debug)]
pub(super) enum WorkerError {
    Errno(Errno),
    /// An errno of a child.
    Named(String),
    Refused(String),
}

impl From<Errno> for WorkerError {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

pub(super) type Result<T> = std::result::Result<T, WorkerError>;

/// The state of a worker: what it has open.
#[derive(Debug, Default)]
pub struct Worker {
    pub(super) base: Vec<u8>,
    pub(super) last: Handle,
    pub(super) files: HashMap<Handle, OwnedFd>,
    pub(super) directories: HashMap<Handle, Dir>,
    pub(super) maps: HashMap<Handle, Mapping>,
    pub(super) children: HashMap<Handle, Child>,
}

impl Worker {
    /// Closes and releases all that is open, and ends the children.
    pub(super) fn reset(&mut self) {
        for (_, child) in self.children.drain() {
            child.end();
        }
        self.forget();
    }

    pub(super) fn forget(&mut self) {
        self.children.clear();
        self.maps.clear();
        self.directories.clear();
        self.files.clear();
    }

    /// The path that the system call gets.
    pub(super) fn path(&self, path: &Bytes) -> Vec<u8> {
        if path.0.starts_with(b"/") || self.base.is_empty() {
            return path.0.clone();
        }
        [&self.base[..], b"/", &path.0[..]].concat()
    }

    pub(super) fn new_handle(&mut self) -> Handle {
        self.last += 1;
        self.last
    }

    pub(super) fn file(&self, handle: Handle) -> Result<BorrowedFd<'_>> {
        self.files.get(&handle).map(|file| file.as_fd()).ok_or_else(|| unknown(handle))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.reset();
    }
}

pub(super) fn unknown(handle: Handle) -> WorkerError {
    WorkerError::Refused(format!("there is no handle {handle}"))
}

/// The answer of a call that only succeeds or fails.
pub(super) fn done(result: rustix::io::Result<()>) -> Result<Answer> {
    Ok(result.map(|()| Answer::Done)?)
}
