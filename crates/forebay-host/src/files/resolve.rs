//! Resolves symbolic links in paths.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Result, on};

/// The path with all links resolved.
pub fn real_path(path: &Path) -> Result<PathBuf> {
    on(fs::canonicalize(path), "find", path)
}

/// The real path of the nearest ancestor of `path` (or itself) that exists.
pub fn nearest_real_path(path: &Path) -> Result<PathBuf> {
    for ancestor in path.ancestors() {
        match real_path(ancestor) {
            Err(error) if error.is_not_found() => {}
            found => return found,
        }
    }
    Ok(PathBuf::from("/"))
}

/// The path with the links of what exists of it resolved.
pub fn final_path(path: &Path) -> Result<PathBuf> {
    for ancestor in path.ancestors() {
        match real_path(ancestor) {
            Err(error) if error.is_not_found() => {}
            found => {
                let rest = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
                let base = found?;
                // An empty rest would leave a slash at the end.
                return Ok(base.components().chain(rest.components()).collect());
            }
        }
    }
    Ok(path.to_owned())
}

/// The directory that holds a path; the root for the root.
pub fn parent_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}
