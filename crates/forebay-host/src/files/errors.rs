//! What an error of a file operation means.

use std::io;
use std::path::Path;

use rustix::io::Errno;

use crate::{Result, on};

/// Attaches operation and path to the error of a call on an open file.
pub fn with_path<T>(result: io::Result<T>, operation: &'static str, path: &Path) -> Result<T> {
    on(result, operation, path)
}

/// Is this the answer of a file system that has no more room, or gives no more to this user?
pub fn is_full(error: &io::Error) -> bool {
    let full = [Errno::NOSPC, Errno::DQUOT];
    full.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Is it that a quota is used up?
pub fn is_over_quota(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::DQUOT.raw_os_error())
}

/// Do symbolic links lead in a circle?
pub fn is_loop(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
}
