//! Classifies errors of file operations.

use std::io;
use std::path::Path;

use rustix::io::Errno;

use crate::{Result, with_context};

/// Attaches operation and path to the error of a call on an open file.
pub fn with_path<T>(result: io::Result<T>, operation: &'static str, path: &Path) -> Result<T> {
    with_context(result, operation, path)
}

/// Whether the file system is full or a quota is exceeded.
pub fn is_full(error: &io::Error) -> bool {
    let full = [Errno::NOSPC, Errno::DQUOT];
    full.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Whether a quota is exceeded.
pub fn is_over_quota(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::DQUOT.raw_os_error())
}

/// Whether the data cannot be had: `EIO`.
pub fn is_data_lost(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::IO.raw_os_error())
}

/// Whether symbolic links form a loop.
pub fn is_loop(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
}
