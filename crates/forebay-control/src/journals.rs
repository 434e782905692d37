//! The journals of a job's own staging, as other processes find them.

use std::path::PathBuf;

use forebay_mover::{Account, Error as Unusable, Failure, Journal};

use crate::record::Recorded;
use crate::{Direction, Error};

/// Name of the journal of a stage-in, in the job's directory.
pub(crate) const STAGE_IN: &str = "stage-in.journal";
/// Name of the journal of a stage-out in the allocation, if the state directory takes none.
pub(crate) const STAGE_OUT: &str = "stage-out.journal";

impl Recorded {
    /// How far its stage-out has come, and at most so many failures; none if none was begun.
    ///
    /// # Errors
    /// If its journal cannot be read.
    pub fn staged_out(&self, failures: usize) -> Result<Option<(Account, Vec<Failure>)>, Error> {
        let Some(journal) = self.begun_out()? else {
            return Ok(None);
        };
        Ok(Some((journal.account()?, journal.failures(failures)?)))
    }

    /// The journal of what it stages, or staged last: out if that was begun, else in; none if neither was.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn staging(&self) -> Result<Option<(Direction, Journal)>, Error> {
        if let Some(journal) = self.begun_out()? {
            return Ok(Some((Direction::Out, journal)));
        }
        let begun = self.begun_in()?;
        Ok(begun.map(|journal| (Direction::In, journal)))
    }

    /// Removes files that a stage-in has left half done.
    pub(crate) fn stage_in_half_done(&self) -> Result<(), Error> {
        if let Some(journal) = self.begun_in()? {
            journal.remove_parts(&self.record.id)?;
        }
        Ok(())
    }

    fn begun_in(&self) -> Result<Option<Journal>, Error> {
        existing(self.record.job_directory.join(STAGE_IN))
    }

    /// The journal of a stage-out that was begun, if there is one.
    pub(crate) fn begun_out(&self) -> Result<Option<Journal>, Error> {
        if let Some(journal) = existing(self.journal())? {
            return Ok(Some(journal));
        }
        let root = self.record.place.as_ref().map(|place| &place.root);
        root.map_or(Ok(None), |root| {
            existing(self.record.reachable_root(root).join(STAGE_OUT))
        })
    }
}

fn existing(path: PathBuf) -> Result<Option<Journal>, Error> {
    match Journal::open_existing(&path) {
        Err(Unusable::Host(error)) if error.is_not_found() => Ok(None),
        opened => Ok(Some(opened?)),
    }
}
