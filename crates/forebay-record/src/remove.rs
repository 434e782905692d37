//! Takes a job's record off the disk, with the files next to it.

use forebay_host::files;
use forebay_mover::Journal;

use crate::{Error, RecordFile};

impl RecordFile {
    /// Takes it off the disk: nothing of the job is left.
    ///
    /// # Errors
    /// If one of its files cannot be removed.
    pub fn remove(self) -> Result<(), Error> {
        Journal::remove(&self.journal())?;
        self.remove_not_safe_list()?;
        self.remove_drained_into()?;
        // There is one if we were killed while we wrote it.
        files::remove_if_present(&self.temporary())?;
        Ok(files::remove_file(self.path())?)
    }
}
