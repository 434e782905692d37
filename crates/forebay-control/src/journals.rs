//! The journals of a job's own staging, as other processes find them.

use std::io::Write;
use std::path::{Path, PathBuf};

use forebay_host::files;
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
        if_there(Journal::open_existing(
            &self.record.job_directory.join(STAGE_IN),
        ))
    }

    /// The journal of a stage-out that was begun, if there is one: in the allocation, where the state directory
    /// took none, or beside the record. From outside of the view.
    pub(crate) fn begun_out(&self) -> Result<Option<Journal>, Error> {
        let place = self.record.place.as_ref();
        let inside = place.map(|place| self.record.reachable_root(&place.root));
        let inside = inside.map(|root| root.join(STAGE_OUT));
        let opened = match inside.filter(|path| files::status(path).is_ok()) {
            Some(path) if place.is_some_and(|place| place.mounted) => self.open_copy(&path),
            Some(path) => Journal::open_existing(&path),
            None => Journal::open_existing(&self.journal()),
        };
        if_there(opened)
    }

    /// Opens a copy of a journal that lies in another view, and has no name any more: SQLite follows links
    /// by itself, and takes that to the root of the view for our own root.
    fn open_copy(&self, journal: &Path) -> Result<Journal, Unusable> {
        let name = format!("forebay-journal-{}-{}", self.record.id, std::process::id());
        let copy = std::env::temp_dir().join(name);
        let with = |path: &Path, end: &str| {
            let mut path = path.as_os_str().to_owned();
            path.push(end);
            PathBuf::from(path)
        };
        let copied = ["", "-wal"].into_iter().try_for_each(|end| {
            let bytes = match files::read_bytes(&with(journal, end)) {
                Err(error) if error.is_not_found() => return Ok(()),
                bytes => bytes?,
            };
            let path = with(&copy, end);
            let mut file = files::make_file(&path, 0o600)?;
            files::named(file.write_all(&bytes), "write", &path)
        });
        let opened = copied
            .map_err(Unusable::from)
            .and_then(|()| Journal::open_existing(&copy));
        Journal::remove(&copy)?;
        opened
    }
}

fn if_there(opened: Result<Journal, Unusable>) -> Result<Option<Journal>, Error> {
    match opened {
        Err(Unusable::Host(error)) if error.is_not_found() => Ok(None),
        opened => Ok(Some(opened?)),
    }
}
