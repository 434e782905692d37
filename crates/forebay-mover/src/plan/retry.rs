//! Prepares a journal for a retry.

use crate::error::Error;
use crate::journal::database::Journal;
use crate::model::findings::Findings;
use crate::plan::writer::{Plan, PlanProgress};

/// Marks failed files and directories for a retry, and scans again the sources that could not be scanned. Plans
/// everything again if the plan was interrupted, or found what cannot be staged, which the user may have corrected.
///
/// # Errors
/// Fails if the journal cannot be written; [`Error::PlanInterrupted`] if `on_planned` stops it.
pub fn retry(journal: &Journal, on_planned: PlanProgress) -> Result<Findings, Error> {
    journal.check_rows()?;
    journal.reset_failed()?;
    if journal.plans_again()? {
        let transfers = journal.transfers("")?;
        let plan = Plan::begin(journal, on_planned)?;
        for transfer in &transfers {
            plan.add_or_record_failure(transfer)?;
        }
        return plan.end();
    }
    let failed = journal.transfers("WHERE reason IS NOT NULL")?;
    if failed.is_empty() {
        return Ok(Findings::default());
    }
    // A partial scan must not count as complete after a restart.
    journal.set_meta("planning", 1_i64)?;
    let plan = Plan::extend(journal, on_planned)?;
    for transfer in &failed {
        plan.add_or_record_failure(transfer)?;
    }
    plan.end()
}
