//! What a journal plans that is not at its place.

use std::path::{Path, PathBuf};

use forebay_host::files::{self, Kind, Status};

use crate::item::is_same;
use crate::{Error, Journal};

/// Rows that are read at a time.
const ROWS: usize = 4096;

/// A file or link that exists at its source only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Where it lies.
    pub source: PathBuf,
    /// Where it should be.
    pub target: PathBuf,
    /// Its bytes.
    pub bytes: u64,
}

impl Journal {
    /// Tells of each file and link whose target is not there, or is not of the same size and time of last
    /// change, whatever the journal says of it. What is gone from its source is not missing.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub fn missing(&self, mut each: impl FnMut(Missing)) -> Result<(), Error> {
        let mut last = 0;
        loop {
            let items = self.all_after(last, ROWS)?;
            let Some(item) = items.last() else {
                return Ok(());
            };
            last = item.id;
            for item in items {
                let Ok(wanted) = files::status_of_name(&item.source) else {
                    continue;
                };
                if !is_there(&item.source, &item.target, &wanted) {
                    each(Missing {
                        bytes: wanted.size_bytes,
                        source: item.source,
                        target: item.target,
                    });
                }
            }
        }
    }
}

fn is_there(source: &Path, target: &Path, wanted: &Status) -> bool {
    match files::status_of_name(target) {
        Ok(found) if found.kind != wanted.kind => false,
        Ok(found) if found.kind == Kind::Link => {
            files::read_link(target).ok() == files::read_link(source).ok()
        }
        Ok(found) => is_same(&found, wanted) && !leads_back(source, target, &found, wanted),
        Err(_) => false,
    }
}

/// A link on the way to a target may lead back to the source, which is no copy of itself. Another name of the same
/// file is one.
pub(crate) fn leads_back(source: &Path, target: &Path, found: &Status, wanted: &Status) -> bool {
    (found.device, found.inode) == (wanted.device, wanted.inode)
        && matches!((files::real_path(source), files::real_path(target)), (Ok(a), Ok(b)) if a == b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Transfer, What};

    #[test]
    fn what_is_not_there_or_is_another_version_is_missing() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let (from, to) = (scratch.path().join("from"), scratch.path().join("to"));
        for directory in [&from, &to] {
            files::make_directories(directory, 0o700).expect("made");
        }
        let write = |path: &Path, text: &str| {
            files::write_whole(path, &scratch.path().join("fresh"), text.as_bytes())
                .expect("written");
        };
        write(&from.join("a"), "one");
        write(&from.join("b"), "three");
        files::make_link(Path::new("nowhere"), &from.join("c")).expect("linked");
        let journal = Journal::in_memory().expect("made");
        let (what, source) = (What::Directory, from.clone());
        let target = to.clone();
        let transfer = Transfer {
            what,
            source,
            target,
        };
        journal.plan(&[transfer]).expect("planned");
        let missing = || {
            let mut found = Vec::new();
            let looked = journal.missing(|one| found.push((one.source, one.bytes)));
            looked.expect("read");
            found.sort();
            found
        };
        let at = |name: &str, bytes| (from.join(name), bytes);
        assert_eq!(missing(), [at("a", 3), at("b", 5), at("c", 7)]);
        write(&to.join("a"), "one");
        let status = files::status(&from.join("a")).expect("there");
        files::set_times(&to.join("a"), &status).expect("set");
        write(&to.join("b"), "other"); // as large, but of another time
        let mut status = files::status(&from.join("b")).expect("there");
        status.modified.0 += 5;
        files::set_times(&to.join("b"), &status).expect("set");
        files::make_link(Path::new("nowhere"), &to.join("c")).expect("linked");
        assert_eq!(missing(), [at("b", 5)]);
        files::remove_file(&from.join("b")).expect("removed");
        assert_eq!(missing(), []);
    }
}
