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
