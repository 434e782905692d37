//! Rejects what would be copied into a directory that must not receive it.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::journal::columns::path_at;
use crate::journal::database::Journal;
use crate::journal::destinations::refuse;
use crate::model::failure::Failure;
use crate::plan::writer::Planned;

impl Journal {
    /// Refuses for good what would go into such a directory, as links or mounts on the way may lead there.
    ///
    /// # Errors
    /// If the journal cannot be written, or it was told to stop.
    pub fn reject_destinations(
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
            self.check_cancelled(on_planned, 0)?;
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
