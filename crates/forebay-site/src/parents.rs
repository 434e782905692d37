//! Directories that lead to a path on which root or SlurmUser relies.

use std::path::{Path, PathBuf};

use forebay_host::files;

use crate::Error;

/// A directory that leads to the path, and in which others than these users can exchange names. In a directory with the
/// sticky bit they cannot exchange those of others.
///
/// # Errors
/// If a directory cannot be looked at.
pub fn changeable_parent(path: &Path, trusted: &[u32]) -> Result<Option<PathBuf>, Error> {
    let real = files::real_path(path)?;
    for parent in path.ancestors().skip(1).chain(real.ancestors().skip(1)) {
        let status = files::status(parent)?;
        let is_sticky = status.mode & 0o1000 != 0;
        if !trusted.contains(&status.owner) || (status.mode & 0o022 != 0 && !is_sticky) {
            return Ok(Some(parent.to_owned()));
        }
    }
    Ok(None)
}
