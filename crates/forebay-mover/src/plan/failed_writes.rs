//! Where a source file with a failed write goes: never over another file.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use forebay_host::files::{self, Status};
use parking_lot::Mutex;

use crate::model::failed_writes::{FAILED_WRITE_END, FailedWrites, IncompleteFile};
use crate::model::version::is_same;

/// The sources with a failed write, and those of them that were planned.
#[derive(Debug)]
pub(crate) struct FailedSources {
    pub(crate) failed: FailedWrites,
    pub(crate) planned: Mutex<Vec<IncompleteFile>>,
}

impl FailedSources {
    /// None if there is no failed write.
    pub(crate) fn of(failed: FailedWrites) -> Option<Self> {
        (!failed.is_empty()).then(|| Self { failed, planned: Mutex::default() })
    }

    /// The name that a file gets at its destination, if it is not the usual one.
    pub(crate) fn changed_name(
        &self,
        source: &Path,
        target: &Path,
        status: &Status,
    ) -> Option<OsString> {
        if !self.failed.has(status) {
            return None;
        }
        // An equal file is what an earlier run of this staging copied there.
        let is_renamed =
            files::status_of_name(target).is_ok_and(|existing| !is_same(&existing, status));
        let name = is_renamed.then(|| {
            let mut name = target.file_name().map(OsStr::to_owned).unwrap_or_default();
            name.push(FAILED_WRITE_END);
            name
        });
        let destination = name.as_ref().map(|name| target.with_file_name(name));
        self.planned.lock().push(IncompleteFile {
            source: source.to_owned(),
            destination: destination.unwrap_or_else(|| target.to_owned()),
            is_recorded: self.failed.inodes.contains(&(status.device, status.inode)),
            is_renamed,
        });
        name
    }
}
