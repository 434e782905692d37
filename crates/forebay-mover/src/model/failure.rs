//! One file, directory or transfer that failed, with the reason and the remedy.

use std::path::PathBuf;

/// The errno of a failure whose destination was changed by others, and is kept.
pub const ALREADY_EXISTS: i32 = libc::EEXIST;

/// One thing that could not be moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The source, or the destination if the destination caused the failure.
    pub path: PathBuf,
    /// Why it failed.
    pub reason: String,
    /// What the user can do about it, if known.
    pub remedy: Option<String>,
    /// The error number, see errno(3), if there is one.
    pub errno: Option<i32>,
}

impl Failure {
    /// A failure without remedy or error number.
    pub fn new(path: PathBuf, reason: String) -> Self {
        Self { path, reason, remedy: None, errno: None }
    }
}
