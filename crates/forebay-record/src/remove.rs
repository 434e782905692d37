//! Takes a job's record off the disk, with the files next to it.

use forebay_host::files;
use forebay_mover::Journal;

use crate::{Error, RecordFile};

impl RecordFile {
    /// Takes it off the disk: nothing of the job is left.
    pub fn remove(self) -> Result<(), Error> {
        Journal::remove(&self.journal())?;
        self.remove_unsaved_list()?;
        self.remove_target_log()?;
        // There is one if we were killed while we wrote it.
        files::remove_if_present(&self.temporary())?;
        Ok(files::remove_file(self.path())?)
    }
}
