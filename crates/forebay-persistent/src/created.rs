//! Allocations that a job made: they are there for others before the job itself is started.

use forebay_host::files;
use forebay_store::persistent::Persistent;

use crate::search::StoreSearch;
use forebay_host::messages::Messages;

/// One that the job made.
#[derive(Debug)]
pub(crate) struct CreatedAllocation {
    pub(crate) persistent: Persistent,
    /// When we have changed last who uses it; none once others have.
    uses_changed: Option<(i64, i64)>,
}

impl CreatedAllocation {
    pub(crate) fn of(persistent: Persistent) -> Self {
        Self { uses_changed: uses_changed(&persistent), persistent }
    }

    /// Writes down that the job uses it.
    pub(crate) fn record_own_use<T>(&mut self, record: impl FnOnce() -> T) -> T {
        let was_unshared = self.is_unshared();
        let written = record();
        self.uses_changed = uses_changed(&self.persistent).filter(|_| was_unshared);
        written
    }

    /// Has no other job used it until now? Each writes a file and takes it away again, which changes the
    /// directory.
    pub(crate) fn is_unshared(&self) -> bool {
        self.uses_changed.is_some() && self.uses_changed == uses_changed(&self.persistent)
    }

    /// Takes it away, since the job was not started.
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
