//! Syncs files and directories, so that written data survive a power failure.

use std::fs::File;
use std::io;
use std::os::fd::IntoRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::Advice;
use rustix::io::Errno;

use super::{Kind, names_in, open_directory, open_source, parent_of, status_of_name};
use crate::{Result, with_context};

/// Syncs the names in a directory. If the directory is not readable, it cannot be opened, and the
/// function syncs all file systems. Some file systems sync no directory alone: then all of it is synced.
pub fn sync_directory(path: &Path) -> Result<()> {
    match open_directory(path, true) {
        Err(error) if error.is_denied() => {
            rustix::fs::sync();
            Ok(())
        }
        opened => with_context(sync_opened(&opened?), "sync", path),
    }
}

/// The same for a directory that is open. Allocates nothing: a child calls it before exec.
pub(crate) fn sync_opened(directory: &File) -> rustix::io::Result<()> {
    match rustix::fs::fsync(directory) {
        Err(Errno::INVAL | Errno::OPNOTSUPP) => rustix::fs::syncfs(directory),
        synced => synced,
    }
}

/// Syncs the names of new directories in their parents.
pub fn sync_names(made: &[PathBuf]) -> Result<()> {
    let parents = made.iter().map(|path| match parent_of(path) {
        here if here.as_os_str().is_empty() => Path::new("."),
        parent => parent,
    });
    parents.into_iter().try_for_each(sync_directory)
}

/// Syncs a file or a directory tree. A missing path is no error.
pub fn sync_tree(path: &Path) -> Result<()> {
    let kind = match status_of_name(path) {
        Err(error) if error.is_not_found() => return Ok(()),
        status => status?.kind,
    };
    match kind {
        Kind::Directory => {
            for name in names_in(path)? {
                sync_tree(&path.join(name))?;
            }
            sync_directory(path)
        }
        Kind::File => with_context(open_source(path, false)?.sync_all(), "sync", path),
        Kind::Link | Kind::Other => Ok(()),
    }
}

/// Closes a written file. Network file systems and FUSE may send the data only now, and report here what fails.
pub fn close(file: File, path: &Path) -> Result<()> {
    // SAFETY: the descriptor is this file's, and nobody uses it after this.
    let closed = match unsafe { libc::close(file.into_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    };
    with_context(closed, "close", path)
}

/// Syncs the file system of an open file.
pub fn sync_file_system(file: &File, path: &Path) -> Result<()> {
    with_context(rustix::fs::syncfs(file), "sync the file system of", path)
}

/// Requests that the kernel drops a file from the page cache, so that the next read uses the disk.
/// The kernel keeps pages that are not written yet.
pub fn drop_page_cache(file: &File, path: &Path) -> Result<()> {
    let dropped = rustix::fs::fadvise(file, 0, None, Advice::DontNeed);
    with_context(dropped, "drop from memory what is of", path)
}
