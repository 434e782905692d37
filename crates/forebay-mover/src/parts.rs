//! Files between their first and their last byte.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use forebay_host::files;

use crate::Plan;

/// Temporary name of a file on its way to `target`; `tag` keeps two jobs apart, `number` two files.
pub(crate) fn temporary(target: &Path, tag: &str, number: &str) -> PathBuf {
    let directory = target.parent().unwrap_or(Path::new("/"));
    directory.join(format!("{}{number}{END}", begin(tag)))
}

const END: &str = ".part";

fn begin(tag: &str) -> String {
    format!(".forebay-{tag}-")
}

impl Plan {
    /// Removes what an earlier staging with this tag, which was killed, left half done beside the
    /// places of this plan. Returns how many files it were.
    ///
    /// # Errors
    /// If one cannot be removed.
    pub fn remove_parts(&self, tag: &str) -> forebay_host::Result<usize> {
        let entries = self.files.iter().chain(&self.links);
        let directories: BTreeSet<_> = entries.filter_map(|e| e.target.parent()).collect();
        let mut removed = 0;
        for directory in directories {
            // What is not there holds none; what cannot be listed, staging itself will complain of.
            let Ok(names) = files::names_in(directory) else {
                continue;
            };
            for name in names {
                let text = name.to_string_lossy();
                if text.starts_with(&begin(tag)) && text.ends_with(END) {
                    files::remove_file(&directory.join(&name))?;
                    removed += 1;
                }
            }
        }
        Ok(removed)
    }
}
