//! The state of a whole staging.

use crate::error::Error;
use crate::journal::database::Journal;
use crate::model::counts::Counts;
use crate::status::shortages::Shortage;

/// The state of one staging.
#[derive(Debug, Clone)]
pub struct Account {
    /// How many files are how far.
    pub counts: Counts,
    /// A process carries it out.
    pub is_running: bool,
    /// Somebody asked it to stop.
    pub is_cancelled: bool,
    /// All sources were looked through.
    pub is_planned: bool,
    /// File systems on which there is no room.
    pub shortages: Vec<Shortage>,
}

impl Journal {
    /// All of its state at once.
    pub fn account(&self) -> Result<Account, Error> {
        Ok(Account {
            // First: what is counted after it has ended is not taken for left.
            is_running: self.is_running()?,
            counts: self.counts()?,
            is_cancelled: self.is_cancelled()?,
            is_planned: self.is_planned()?,
            shortages: self.shortages()?,
        })
    }
}
