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
        if self.record.place.is_none() {
            let requests = self.requests_root();
            if files::status_of_name(&requests).is_ok() {
                files::remove_tree(&requests)?;
            }
        }
        // A process killed while it wrote the record leaves this file.
        files::remove_if_present(&self.temporary())?;
        Ok(files::remove_file(self.path())?)
    }
}
