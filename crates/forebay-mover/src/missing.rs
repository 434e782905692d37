//! What of a plan is not at its place.

use std::path::Path;

use forebay_host::files::{self, Kind, Status};

use crate::Plan;
use crate::plan::Entry;

/// A file or link that exists at its source only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing<'a> {
    /// Where it lies.
    pub source: &'a Path,
    /// Where it should be.
    pub target: &'a Path,
    /// Its bytes.
    pub bytes: u64,
}

impl Plan {
    /// Files and links whose target is not there, or is not of the same size and time of last change.
    pub fn missing(&self) -> impl Iterator<Item = Missing<'_>> {
        let entries = self.files.iter().chain(&self.links);
        entries
            .filter(|entry| !is_there(entry))
            .map(|entry| Missing {
                source: &entry.source,
                target: &entry.target,
                bytes: entry.status.size_bytes,
            })
    }
}

fn is_there(entry: &Entry) -> bool {
    let wanted = &entry.status;
    match files::status_of_name(&entry.target) {
        Ok(found) if found.kind != wanted.kind => false,
        Ok(found) if found.kind == Kind::Link => {
            let leads_to = |path| files::read_link(path).ok();
            leads_to(&entry.target) == leads_to(&entry.source)
        }
        Ok(found) => found.size_bytes == wanted.size_bytes && is_as_old(&found, wanted),
        Err(_) => false,
    }
}

/// Some file systems keep whole seconds only.
fn is_as_old(found: &Status, wanted: &Status) -> bool {
    let (seconds, nanoseconds) = found.modified;
    found.modified == wanted.modified || (nanoseconds == 0 && seconds == wanted.modified.0)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::{Options, Transfer, What, carry_out};

    #[test]
    fn what_is_not_there_or_is_another_version_is_missing() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let (from, to) = (scratch.path().join("from"), scratch.path().join("to"));
        files::make_directories(&from, 0o700).expect("made");
        let write = |name: &str, text: &str| {
            files::write_whole(&from.join(name), &from.join("fresh"), text.as_bytes())
                .expect("written");
        };
        write("a", "one");
        write("b", "three");
        files::make_link(Path::new("nowhere"), &from.join("c")).expect("linked");
        let plan = || {
            let mut plan = Plan::default();
            let (source, target) = (from.clone(), to.clone());
            let what = What::Directory;
            let added = plan.add(&Transfer {
                what,
                source,
                target,
            });
            added.expect("planned");
            plan
        };
        let missing = || {
            let plan = plan();
            let mut found: Vec<_> = plan
                .missing()
                .map(|m| (m.source.to_owned(), m.bytes))
                .collect();
            found.sort();
            found
        };
        let at = |name: &str, bytes| -> (PathBuf, u64) { (from.join(name), bytes) };
        assert_eq!(missing(), [at("a", 3), at("b", 5), at("c", 7)]);
        let options = Options {
            workers: 1,
            piece_bytes: 1 << 20,
            durable: false,
            tag: "t".to_owned(),
        };
        let moved = carry_out(&plan(), &options, &|_| (), &|| false);
        assert_eq!((moved.files, missing()), (3, vec![]));
        write("b", "THREE"); // as large, but later
        assert_eq!(missing(), [at("b", 5)]);
        files::remove_file(&to.join("c")).expect("removed");
        assert_eq!(missing(), [at("b", 5), at("c", 7)]);
    }
}
