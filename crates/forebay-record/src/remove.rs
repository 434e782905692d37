//! Removes a job's record with the files next to it.

use forebay_host::files;
use forebay_mover::Journal;

use crate::{Error, RecordFile};

impl RecordFile {
    /// Removes the record, its journal and its lists.
    pub fn remove(self) -> Result<(), Error> {
        Journal::remove(&self.journal())?;
        self.remove_unsaved_list()?;
        self.remove_target_log()?;
        // A process killed while it wrote the record leaves this file.
        files::remove_if_present(&self.temporary())?;
        Ok(files::remove_file(self.path())?)
    }
}
