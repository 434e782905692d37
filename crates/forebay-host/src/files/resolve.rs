//! Resolves symbolic links in paths, and finds the paths of open files.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use crate::{Result, with_context};

/// The path with all symbolic links resolved.
pub fn real_path(path: &Path) -> Result<PathBuf> {
    with_context(fs::canonicalize(path), "find", path)
}

/// The path of an open file, as the kernel knows it.
pub fn path_of(file: &File) -> Result<PathBuf> {
    let itself = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    with_context(fs::read_link(&itself), "look at", &itself)
}

/// The real path of the nearest existing ancestor of `path`, which may be `path` itself.
pub fn nearest_real_path(path: &Path) -> Result<PathBuf> {
    for ancestor in path.ancestors() {
        match real_path(ancestor) {
            Err(error) if error.is_not_found() => {}
            found => return found,
        }
    }
    Ok(PathBuf::from("/"))
}

/// The path with the symbolic links of its existing part resolved.
pub fn final_path(path: &Path) -> Result<PathBuf> {
    for ancestor in path.ancestors() {
        match real_path(ancestor) {
            Err(error) if error.is_not_found() => {}
            found => {
                let rest = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
                let base = found?;
                // Joining an empty path would add a slash at the end.
                return Ok(base.components().chain(rest.components()).collect());
            }
        }
    }
    Ok(path.to_owned())
}

/// The parent directory; `/` if there is none.
pub fn parent_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}
