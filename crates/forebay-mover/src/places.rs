//! Where things would go, as far as that is no place for them.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use forebay_host::files::Status;
use rusqlite::params;

use crate::item::modified_ns;
use crate::journal::{State, path_at};
use crate::looking::resolve;
use crate::planning::{bytes, number};
use crate::{Error, Failure, Journal, Planned};

impl Journal {
    /// A file stands where it is to go, which whoever brought it there knows better than a look at its times
    /// could tell: the file system may not keep them as they are. Returns whether there is such a file to be
    /// moved, whose source is as it was when it was planned.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub fn stands(&self, target: &Path, source: &Status) -> Result<bool, Error> {
        let (Some(parent), Some(name)) = (target.parent(), target.file_name()) else {
            return Ok(false);
        };
        self.with(|connection| {
            let mut set = connection.prepare_cached(
                "UPDATE entry SET state = ? WHERE state = 0 AND link_of IS NULL AND name = ? AND inode = ? \
                 AND size_bytes = ? AND modified_ns = ? AND place = (SELECT id FROM place WHERE path = ?)",
            )?;
            let changed = set.execute(params![
                State::Placed as i64,
                name.as_bytes(),
                number(source.inode),
                number(source.size_bytes),
                modified_ns(source),
                bytes(&resolve(parent)),
            ])?;
            Ok(changed > 0)
        })
    }

    /// Does what is to go there stand there now?
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub fn is_placed(&self, target: &Path) -> Result<bool, Error> {
        let (Some(parent), Some(name)) = (target.parent(), target.file_name()) else {
            return Ok(false);
        };
        self.with(|connection| {
            let mut find = connection.prepare_cached(
                "SELECT 1 FROM entry WHERE state = ? AND name = ? AND place = (SELECT id FROM place WHERE path = ?)",
            )?;
            find.exists(params![
                State::Placed as i64,
                name.as_bytes(),
                bytes(&resolve(parent)),
            ])
        })
    }

    /// Refuses for good what would go into such a directory, as links or mounts on the way may lead there.
    ///
    /// # Errors
    /// If the journal cannot be written, or it was told to stop.
    pub fn refuse_places(
        &self,
        reason: &str,
        on_planned: Planned,
        is_refused: &dyn Fn(&Path) -> bool,
    ) -> Result<(), Error> {
        let places: Vec<(i64, PathBuf)> = self.with(|connection| {
            let mut found = connection.prepare("SELECT id, path FROM place")?;
            let rows = found.query_map([], |row| Ok((row.get(0)?, path_at(row, 1)?)))?;
            rows.collect()
        })?;
        for (place, path) in places {
            self.goes_on(on_planned, 0)?;
            if !is_refused(&path) {
                continue;
            }
            self.with(|connection| {
                let of = "SELECT id FROM directory WHERE place = ?";
                let mut targets =
                    connection.prepare("SELECT target FROM directory WHERE place = ?")?;
                let targets = targets.query_map([place], |row| path_at(row, 0))?;
                let targets: Vec<PathBuf> = targets.collect::<rusqlite::Result<_>>()?;
                for target in targets {
                    refuse(connection, &Failure::new(target, reason.to_owned()), true)?;
                }
                connection.execute(
                    &format!("DELETE FROM entry WHERE directory IN ({of})"),
                    [place],
                )?;
                connection.execute("DELETE FROM directory WHERE place = ?", [place])?;
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// For good: whatever becomes of it, this staging cannot save it.
pub(crate) fn refuse(
    connection: &rusqlite::Connection,
    failure: &Failure,
    is_for_good: bool,
) -> rusqlite::Result<()> {
    let mut set =
        connection.prepare_cached("INSERT OR REPLACE INTO refusal VALUES (?, ?, ?, ?, ?)")?;
    set.execute(params![
        failure.path.as_os_str().as_bytes(),
        failure.reason,
        failure.remedy,
        failure.errno,
        is_for_good
    ])
    .map(drop)
}
