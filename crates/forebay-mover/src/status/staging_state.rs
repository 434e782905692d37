//! The state of a whole staging.

use crate::error::Error;
use crate::journal::database::Journal;
use crate::model::counts::Counts;
use crate::status::shortages::Shortage;
use crate::status::shortages::shortages;

/// The state of a staging.
#[derive(Debug, Clone)]
pub struct StagingState {
    /// Numbers of files by state.
    pub counts: Counts,
    /// Does a process run it?
    pub is_running: bool,
    /// Was a stop requested?
    pub is_cancelled: bool,
    /// Are all sources scanned?
    pub is_planned: bool,
    /// File systems without room.
    pub shortages: Vec<Shortage>,
}

/// Reads the whole state.
pub fn staging_state(journal: &Journal) -> Result<StagingState, Error> {
    Ok(StagingState {
        // First: otherwise, a run that ends meanwhile would appear stopped, with files left.
        is_running: journal.is_running()?,
        counts: journal.counts()?,
        is_cancelled: journal.is_cancelled()?,
        is_planned: journal.is_planned()?,
        shortages: shortages(journal)?,
    })
}
