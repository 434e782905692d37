//! Persistent allocations that a job created. Other jobs can use them before this job starts.

use forebay_host::files;
use forebay_store::persistent::Persistent;

use crate::search::StoreSearch;
use forebay_host::messages::Messages;

/// An allocation that the job created.
#[derive(Debug)]
pub(crate) struct CreatedAllocation {
    pub(crate) persistent: Persistent,
    /// Modification time of the use directory after this job's last change; none if others changed it.
    uses_changed: Option<(i64, i64)>,
}

impl CreatedAllocation {
    pub(crate) fn of(persistent: Persistent) -> Self {
        Self { uses_changed: uses_changed(&persistent), persistent }
    }

    /// Runs `record`, which records that the job uses the allocation.
    pub(crate) fn record_own_use<T>(&mut self, record: impl FnOnce() -> T) -> T {
        let was_unshared = self.is_unshared();
        let written = record();
        self.uses_changed = uses_changed(&self.persistent).filter(|_| was_unshared);
        written
    }

    /// True if no other job has used it. A use creates and removes a file, which changes the
    /// directory.
    pub(crate) fn is_unshared(&self) -> bool {
        self.uses_changed.is_some() && self.uses_changed == uses_changed(&self.persistent)
    }

    /// Destroys it, since the job was not started.
    pub(crate) fn undo(&self, is_unshared: bool, watcher: &dyn Messages) {
        let name = &self.persistent.name;
        if !is_unshared {
            return watcher.warning(&format!(
                "{name} stays: another job has used it; forebay persistent destroy {name} removes it"
            ));
        }
        let places = StoreSearch { named: Some(self.persistent.store()), site: None };
        if let Err(error) = places.destroy(name, false) {
            watcher.warning(&format!("{name} stays: {error}"));
        }
    }
}

fn uses_changed(persistent: &Persistent) -> Option<(i64, i64)> {
    let uses = files::status(&persistent.uses()).ok()?;
    Some(uses.modified)
}
