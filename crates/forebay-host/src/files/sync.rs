//! Makes what was written survive a power cut.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::Advice;

use super::{Kind, names_in, open_to_read, status_of_name};
use crate::{Result, on};

/// Makes the names in a directory survive a power cut. A directory that we may write but not read
/// cannot be opened for it: then all file systems are synced.
pub fn sync_directory(path: &Path) -> Result<()> {
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            rustix::fs::sync();
            Ok(())
        }
        opened => on(on(opened, "open", path)?.sync_all(), "sync", path),
    }
}

/// Syncs a file, or each file and directory below a directory. A path that does not exist needs none.
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
        Kind::File => on(open_to_read(path)?.sync_all(), "sync", path),
        Kind::Link | Kind::Other => Ok(()),
    }
}

/// Syncs the file system that holds the file.
pub fn sync_file_system(file: &File, path: &Path) -> Result<()> {
    on(rustix::fs::syncfs(file), "sync the file system of", path)
}

/// Drops what the machine's memory holds of a file, so that it is read from the disk next. A request: the
/// kernel keeps what was not written yet.
pub fn drop_page_cache(file: &File, path: &Path) -> Result<()> {
    let dropped = rustix::fs::fadvise(file, 0, None, Advice::DontNeed);
    on(dropped, "drop from memory what is of", path)
}
