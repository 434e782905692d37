//! Prepares a journal for another attempt.

use crate::error::Error;
use crate::journal::database::Journal;
use crate::plan::writer::Planned;

impl Journal {
    /// Makes ready what failed to be tried again.
    ///
    /// # Errors
    /// If the journal cannot be written, and [`Error::PlanInterrupted`] if `on_planned` stops it.
    pub fn retry(&self, on_planned: Planned) -> Result<(), Error> {
        self.reset_failed()?;
        self.look_again(on_planned)
    }

    /// Whether [`Journal::retry`] plans everything again.
    pub fn plans_again(&self) -> Result<bool, Error> {
        Ok(!self.is_planned()? || self.has_refusals()?)
    }

    /// Looks again through what could not be looked through; or through everything if that was
    /// interrupted, or found what cannot be staged, which the user may have corrected.
    pub(crate) fn look_again(&self, on_planned: Planned) -> Result<(), Error> {
        if self.plans_again()? {
            let transfers = self.transfers("")?;
            self.begin_plan()?;
            for transfer in &transfers {
                self.plan_or_record_failure(transfer, on_planned)?;
            }
            return self.end_plan();
        }
        let failed = self.transfers("WHERE reason IS NOT NULL")?;
        if failed.is_empty() {
            return Ok(());
        }
        // One that is looked through in part must not be taken for a whole one by whoever comes after us.
        self.set_meta("planning", 1_i64)?;
        for transfer in &failed {
            self.plan_or_record_failure(transfer, on_planned)?;
        }
        self.end_plan()
    }
}
