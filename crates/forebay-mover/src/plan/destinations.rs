//! Rejects files whose destination directory must not receive them.

use std::path::Path;

use crate::error::Error;
use crate::journal::database::Journal;
use crate::plan::writer::Planned;

impl Journal {
    /// Rejects permanently what would go into such a directory, also through links or mounts.
    ///
    /// # Errors
    /// Fails if the journal cannot be written, or `on_planned` stopped it.
    pub fn reject_destinations(
        &self,
        reason: &str,
        on_planned: Planned,
        is_refused: &dyn Fn(&Path) -> bool,
    ) -> Result<(), Error> {
        for (place, path) in self.places()? {
            self.check_cancelled(on_planned, 0)?;
            if is_refused(&path) {
                self.reject_place(place, reason)?;
            }
        }
        Ok(())
    }
}
