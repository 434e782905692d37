//! Marks and looks up files by their destinations; keeps what was rejected.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use forebay_host::files::Status;
use rusqlite::params;

use crate::error::Error;
use crate::journal::columns::{bytes, number};
use crate::journal::database::Journal;
use crate::model::failure::Failure;
use crate::model::found::resolve;
use crate::model::state::State;
use crate::model::version::modified_ns;

impl Journal {
    /// A file stands where it is to go, which whoever brought it there knows better than a look at its times
    /// could tell: the file system may not keep them as they are. Returns whether there is such a file to be
    /// moved, whose source is as it was when it was planned.
    pub fn mark_delivered(&self, target: &Path, source: &Status) -> Result<bool, Error> {
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
