//! Directories that the job sees under other paths.

use std::path::{Path, PathBuf};

/// A directory that the job sees under another path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathMap {
    /// The path in the script.
    pub path: PathBuf,
    /// The directory shown there.
    pub directory: PathBuf,
}

impl PathMap {
    /// The path outside the view of a path in the job.
    pub fn resolve(maps: &[Self], path: &Path) -> PathBuf {
        // A later map hides an earlier one.
        let shown = maps.iter().rev().find_map(|map| {
            let rest = path.strip_prefix(&map.path).ok()?;
            Some(map.directory.join(rest))
        });
        shown.unwrap_or_else(|| path.to_owned())
    }
}
