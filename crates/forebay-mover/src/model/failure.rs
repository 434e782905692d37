//! One file, directory or transfer that failed, with the reason and the remedy.

use std::path::PathBuf;

/// The errno of a failure whose destination was changed by others, and is kept.
pub const ALREADY_EXISTS: i32 = libc::EEXIST;

/// One thing that could not be moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The source, or the target where that was at fault.
    pub path: PathBuf,
    /// Why.
    pub reason: String,
    /// What to do about it, where that can be said.
    pub remedy: Option<String>,
    /// The number of the error, as in errno(3), where there is one for it.
    pub errno: Option<i32>,
}

impl Failure {
    /// A failure that speaks for itself.
    pub fn new(path: PathBuf, reason: String) -> Self {
        Self { path, reason, remedy: None, errno: None }
    }
}
