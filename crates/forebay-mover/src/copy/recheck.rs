//! Finds copied files and directories that no longer exist.
//! Assumes that this process holds the lock of the journal. Never compares sizes or contents.

use forebay_host::files;

use crate::copy::directories::directory_exists;
use crate::error::Error;
use crate::journal::database::Journal;
use crate::model::item::Item;
use crate::model::state::State;

const ROWS: usize = 4096;

/// Marks copied files that no longer exist, for example after a purge, as planned. Reopens the
/// directories that are to receive files. Returns false if it was stopped before all were
/// checked.
pub(crate) fn requeue_missing_targets(
    journal: &Journal,
    is_stopped: &dyn Fn() -> bool,
) -> Result<bool, Error> {
    let mut last = 0;
    loop {
        let items = journal.all_after(last, ROWS)?;
        let Some(item) = items.last() else {
            return Ok(
                requeue_missing_directories(journal, is_stopped)? && journal.reopen_filled()?
            );
        };
        last = item.id;
        let looked_at = items.iter().take_while(|_| !is_stopped());
        let is_gone = |item: &&Item| {
            item.state == State::Placed
                && files::status_of_name(&item.target).is_err_and(|error| error.is_absent())
        };
        let gone: Vec<i64> = looked_at.filter(is_gone).map(|item| item.id).collect();
        journal.requeue(&gone)?;
        if is_stopped() {
            return Ok(false);
        }
    }
}

/// Marks missing directories as planned. Creating one fails if something else has its name.
/// Returns false if it was stopped before all were checked.
pub(crate) fn requeue_missing_directories(
    journal: &Journal,
    is_stopped: &dyn Fn() -> bool,
) -> Result<bool, Error> {
    let mut last = 0;
    loop {
        let found = journal.directories_placed_after(last, ROWS)?;
        let Some(end) = found.last() else {
            return Ok(true);
        };
        last = end.id;
        let looked_at = found.iter().take_while(|_| !is_stopped());
        let gone = looked_at.filter(|one| !matches!(directory_exists(&one.target), Ok(true)));
        let gone: Vec<_> = gone.map(|one| one.id).collect();
        journal.set_directory_state(&gone, State::Planned)?;
        if is_stopped() {
            return Ok(false);
        }
    }
}
