//! Rejects what would be copied into a directory that must not receive it.

use std::path::Path;

use crate::error::Error;
use crate::journal::database::Journal;
use crate::plan::writer::Planned;

impl Journal {
    /// Refuses for good what would go into such a directory, as links or mounts on the way may lead there.
    ///
    /// # Errors
    /// If the journal cannot be written, or `on_planned` stopped it.
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
