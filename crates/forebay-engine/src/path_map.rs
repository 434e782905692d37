//! Directories that the job sees under other paths.

use std::path::{Path, PathBuf};

/// A directory that the job sees under another path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathMap {
    /// The path in the script.
    pub path: PathBuf,
    /// The directory that is there.
    pub directory: PathBuf,
}

impl PathMap {
    /// What a job finds under a path, seen from outside of its view.
    pub fn behind(maps: &[Self], path: &Path) -> PathBuf {
        // A later one covers an earlier one.
        let shown = maps.iter().rev().find_map(|map| {
            let rest = path.strip_prefix(&map.path).ok()?;
            Some(map.directory.join(rest))
        });
        shown.unwrap_or_else(|| path.to_owned())
    }
}
