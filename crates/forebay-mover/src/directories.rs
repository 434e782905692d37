//! Directories: made before what is in them, finished after it.

use std::collections::HashSet;

use forebay_host::files::{self, Kind};

use crate::engine::{Run, Stop};
use crate::item::{Reason, remedy};
use crate::journal::State;
use crate::steps::Directory;
use crate::{Error, Journal};

const ROWS: usize = 4096;

/// Makes the directories that are missing, open to us alone while they are filled. Returns those that
/// nobody else has put anything into. One that was there keeps its mode.
///
/// # Errors
/// If the journal cannot be used.
pub(crate) fn make(journal: &Journal, stop: &Stop) -> Result<HashSet<i64>, Error> {
    let mut fresh = HashSet::new();
    let mut last = 0;
    loop {
        let found = journal.directories_after(last, ROWS)?;
        let Some(end) = found.last() else {
            return Ok(fresh);
        };
        last = end.id;
        let (mut made, mut there) = (Vec::new(), Vec::new());
        for directory in found {
            if stop.is_asked() {
                break;
            }
            match make_one(&directory) {
                Ok(true) => made.push(directory.id),
                Ok(false) => there.push(directory.id),
                Err(reason) => journal.directory_has_failed(directory.id, &reason)?,
            }
        }
        journal.directories_are(&made, State::Copying)?;
        journal.directories_are(&there, State::Placed)?;
        fresh.extend(made);
    }
}

/// Was it made now?
fn make_one(directory: &Directory) -> Result<bool, Reason> {
    let target = &directory.target;
    match files::make_directory(target, 0o700) {
        Ok(()) => return Ok(true),
        Err(error) if error.is_not_found() => {
            if let Some(parent) = target.parent() {
                files::make_directories(parent, 0o777)?;
            }
            return Ok(files::make_directory(target, 0o700).map(|()| true)?);
        }
        Err(error) if error.already_exists() => {}
        Err(error) => return Err(error.into()),
    }
    match files::status(target) {
        Ok(status) if status.kind == Kind::Directory => Ok(false),
        Ok(_) => Err(Reason::new(
            "it is in the way: not a directory",
            "move it away or choose another target",
        )),
        Err(error) => Err(Reason::new(
            &format!("it is in the way: {error}"),
            &remedy(&error).unwrap_or_default(),
        )),
    }
}

impl Run<'_> {
    /// Gives the directories that were made their modes and times, children before parents.
    ///
    /// # Errors
    /// If the journal cannot be used.
    pub(crate) fn finish_directories(&self) -> Result<(), Error> {
        let mut last = i64::MAX;
        loop {
            let found = self.journal.directories_made_before(last, ROWS)?;
            let Some(end) = found.last() else {
                return Ok(());
            };
            last = end.id;
            let mut finished = Vec::new();
            let mut synced = None;
            for directory in found {
                match self.finish_directory(&directory) {
                    Ok(target) => {
                        finished.push(directory.id);
                        synced = Some((target, directory.target));
                    }
                    Err(reason) => self.journal.directory_has_failed(directory.id, &reason)?,
                }
            }
            if let Some((target, path)) = synced.filter(|_| self.options.durable) {
                // One for all: trees seldom cross file systems, and names were synced as they were made.
                files::sync_file_system(&target, &path)?;
            }
            self.journal.directories_are(&finished, State::Placed)?;
        }
    }

    fn finish_directory(&self, directory: &Directory) -> Result<std::fs::File, Reason> {
        let target = files::open_to_read(&directory.target)?;
        let source = files::open_to_read(&directory.source)?;
        let status = files::status_of(&source, &directory.source)?;
        let paths = (directory.source.as_path(), directory.target.as_path());
        self.give_attributes(&source, &target, paths, &status)?;
        Ok(target)
    }
}
