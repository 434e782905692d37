//! Where a source file with a failed write goes: never over another file.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use forebay_host::files::{self, Status};

use crate::journal::database::Journal;
use crate::model::failed_writes::{FAILED_WRITE_END, FailedWrites, IncompleteFile};
use crate::model::version::is_same;

impl Journal {
    /// The sources with a failed write, for the plans that follow.
    pub fn set_failed_writes(&self, failed: FailedWrites) {
        *self.failed_writes.lock() = (!failed.is_empty()).then_some(failed);
        self.incomplete.lock().clear();
    }

    /// This journal, if sources have failed writes.
    pub(crate) fn with_failed_writes(&self) -> Option<&Self> {
        self.failed_writes.lock().is_some().then_some(self)
    }

    /// The planned files with a failed write, as far as this process planned them.
    pub fn incomplete_files(&self) -> Vec<IncompleteFile> {
        self.incomplete.lock().clone()
    }

    /// The name that a file gets at its destination, if it is not the usual one.
    pub(crate) fn name_beside(
        &self,
        source: &Path,
        target: &Path,
        status: &Status,
    ) -> Option<OsString> {
        let failed = self.failed_writes.lock();
        let failed = failed.as_ref().filter(|failed| failed.has(status))?;
        // An equal file is what an earlier run of this staging copied there.
        let is_renamed =
            files::status_of_name(target).is_ok_and(|standing| !is_same(&standing, status));
        let name = is_renamed.then(|| {
            let mut name = target.file_name().map(OsStr::to_owned).unwrap_or_default();
            name.push(FAILED_WRITE_END);
            name
        });
        let destination = name.as_ref().map(|name| target.with_file_name(name));
        self.incomplete.lock().push(IncompleteFile {
            source: source.to_owned(),
            destination: destination.unwrap_or_else(|| target.to_owned()),
            is_recorded: failed.inodes.contains(&(status.device, status.inode)),
            is_renamed,
        });
        name
    }
}
