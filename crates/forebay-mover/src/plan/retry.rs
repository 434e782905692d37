//! Prepares a journal for a retry.

use crate::error::Error;
use crate::journal::database::Journal;
use crate::plan::writer::Planned;

impl Journal {
    /// Marks failed files and directories for a retry, and scans failed sources again.
    ///
    /// # Errors
    /// Fails if the journal cannot be written; [`Error::PlanInterrupted`] if `on_planned` stops it.
    pub fn retry(&self, on_planned: Planned) -> Result<(), Error> {
        self.check_rows()?;
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
        // A partial scan must not count as complete after a restart.
        self.set_meta("planning", 1_i64)?;
        for transfer in &failed {
            self.plan_or_record_failure(transfer, on_planned)?;
        }
        self.end_plan()
    }
}
