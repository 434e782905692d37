//! What is about to be destroyed: without its name, but whole. So it can be given back when the job that
//! destroys it cannot be started after all.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use forebay_host::files;
use forebay_host::sharing::Held;
use forebay_store::persistent::Persistent;

use super::{Result, destroyable, known};
use forebay_host::messages::Messages;

/// An allocation without its name, had alone as long as this lives: nobody sweeps it away.
#[derive(Debug)]
pub(super) struct Withdrawn {
    pub(super) persistent: Persistent,
    is_at: PathBuf,
    _held: Held,
}

impl Withdrawn {
    pub(super) fn of(persistent: Persistent, hurry: bool) -> Result<Self> {
        let held = destroyable(&persistent, hurry)?;
        Ok(Self {
            is_at: persistent.withdraw()?,
            persistent,
            _held: held,
        })
    }

    /// Removes it with all that is in it.
    pub(super) fn remove(&self) -> Result<()> {
        let root = self.persistent.root();
        // Unless there is another one of its name already.
        if files::status_of_name(root).is_err() {
            known::forget(root)?;
        }
        Ok(files::remove_tree(&self.is_at)?)
    }

    fn put_back(&self, watcher: &dyn Messages) {
        let name = &self.persistent.name;
        match self.persistent.restore(&self.is_at) {
            Ok(root) if root == self.persistent.root() => {}
            Ok(root) => watcher.warning(&format!(
                "{name} was not destroyed, and its name is taken by now: it is {}",
                root.display()
            )),
            Err(error) => watcher.warning(&format!(
                "{name} was not destroyed and could not be given its name back: {error}; move {} before \
                 forebay persistent create takes it for left over",
                self.is_at.display()
            )),
        }
    }
}

/// Gives them all back.
pub(super) fn put_back(all: &[Withdrawn], watcher: &dyn Messages) {
    all.iter().for_each(|one| one.put_back(watcher));
}

/// The removal of some, beside the job: a large tree takes minutes, in which signals and the time limit count.
/// Killed, it is gone on with by whoever sweeps next.
#[derive(Debug)]
pub(super) struct Removal {
    withdrawn: Arc<Vec<Withdrawn>>,
    /// None where no more threads may be made.
    thread: Option<JoinHandle<Vec<String>>>,
}

impl Removal {
    pub(super) fn begin(withdrawn: Vec<Withdrawn>) -> Self {
        let withdrawn = Arc::new(withdrawn);
        let doomed = Arc::clone(&withdrawn);
        let name = "destroying".to_owned();
        let builder = std::thread::Builder::new().name(name);
        let thread = builder.spawn(move || removed(&doomed)).ok();
        Self { withdrawn, thread }
    }

    pub(super) fn destroyed(&self) -> impl Iterator<Item = &Persistent> {
        self.withdrawn.iter().map(|one| &one.persistent)
    }

    /// Waits for it.
    pub(super) fn end(self, watcher: &dyn Messages) {
        let refused = match self.thread.map(JoinHandle::join) {
            Some(Ok(refused)) => refused,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => removed(&self.withdrawn),
        };
        refused.iter().for_each(|line| watcher.warning(line));
    }
}

/// Why some could not be removed.
fn removed(all: &[Withdrawn]) -> Vec<String> {
    let removed = all.iter().map(|one| (one, one.remove()));
    let refused = removed.filter_map(|(one, removed)| {
        let (error, name) = (removed.err()?, &one.persistent.name);
        Some(format!(
            "{error}; forebay persistent destroy {name} removes what is left of it"
        ))
    });
    refused.collect()
}
