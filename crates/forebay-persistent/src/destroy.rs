//! Destroys allocations in two steps: detach (without name, with all data) and remove. A detached
//! allocation is restored if the job that destroys it cannot be started.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use forebay_host::directory_lock::{DirectoryLock, LockMode};
use forebay_host::{files, users};
use forebay_store::persistent::Persistent;

use crate::error::{Error, Result};
use crate::registry;
use crate::uses::{UseState, Uses};
use forebay_host::messages::Messages;
use forebay_host::threads;

/// An allocation without a name. Its exclusive lock protects it from sweeps.
#[derive(Debug)]
pub(crate) struct Detached {
    pub(crate) persistent: Persistent,
    detached_path: PathBuf,
    _held: DirectoryLock,
}

impl Detached {
    pub(crate) fn of(persistent: Persistent, force: bool) -> Result<Self> {
        let held = destroyable(&persistent, force)?;
        check_that_nobody_keeps_a_part(&persistent)?;
        Ok(Self { detached_path: persistent.withdraw()?, persistent, _held: held })
    }

    /// Removes the allocation with its contents.
    pub(crate) fn remove(&self) -> Result<()> {
        let root = self.persistent.root();
        // A new allocation may have the same name.
        if files::status_of_name(root).is_err() {
            registry::unregister(root)?;
        }
        Ok(files::remove_tree(&self.detached_path)?)
    }

    fn restore(&self, watcher: &dyn Messages) {
        let name = &self.persistent.name;
        match self.persistent.restore(&self.detached_path) {
            Ok(root) if root == self.persistent.root() => {}
            Ok(root) => watcher.warning(&format!(
                "{name} was not destroyed, and its name is taken by now: it is {}",
                root.display()
            )),
            Err(error) => watcher.warning(&format!(
                "{name} was not destroyed and could not be given its name back: {error}; move {} before \
                 forebay persistent create takes it for left over",
                self.detached_path.display()
            )),
        }
    }
}

/// Gives detached allocations their names back.
pub(crate) fn restore(all: &[Detached], watcher: &dyn Messages) {
    all.iter().for_each(|one| one.restore(watcher));
}

/// Removes allocations in a thread while the job runs. A large tree takes minutes, and the job must
/// handle signals and its time limit. After a kill the next sweep continues.
#[derive(Debug)]
pub(crate) struct BackgroundRemoval {
    detached: Arc<Vec<Detached>>,
    /// None if the thread could not be created.
    thread: Option<JoinHandle<Vec<String>>>,
}

impl BackgroundRemoval {
    pub(crate) fn begin(detached: Vec<Detached>) -> Self {
        let detached = Arc::new(detached);
        let doomed = Arc::clone(&detached);
        let thread = threads::spawn(move || removed(&doomed)).ok();
        Self { detached, thread }
    }

    pub(crate) fn destroyed(&self) -> impl Iterator<Item = &Persistent> {
        self.detached.iter().map(|one| &one.persistent)
    }

    /// Waits until the allocations are removed.
    pub(crate) fn end(self, watcher: &dyn Messages) {
        let refused = match self.thread.map(JoinHandle::join) {
            Some(Ok(refused)) => refused,
            Some(Err(_)) => {
                vec!["a thread that destroys allocations ended unexpectedly".to_owned()]
            }
            None => removed(&self.detached),
        };
        refused.iter().for_each(|line| watcher.warning(line));
    }
}

/// Removes allocations. Returns a message for each failure.
fn removed(all: &[Detached]) -> Vec<String> {
    let removed = all.iter().map(|one| (one, one.remove()));
    let refused = removed.filter_map(|(one, removed)| {
        let (error, name) = (removed.err()?, &one.persistent.name);
        Some(format!("{error}; forebay persistent destroy {name} removes its leftovers"))
    });
    refused.collect()
}

/// Checks that other users do not prevent the removal of a part. Looks only where they could make one.
fn check_that_nobody_keeps_a_part(persistent: &Persistent) -> Result<()> {
    let namespace = persistent.namespace();
    if users::is_root() || files::status_of_name(&namespace)?.mode & 0o022 == 0 {
        return Ok(());
    }
    let Some(directory) = files::directory_kept_by_another(&namespace)? else {
        return Ok(());
    };
    let owner = users::user_named(files::status_of_name(&directory)?.owner);
    Err(Error::KeptByAnother { name: persistent.name.clone(), owner, directory })
}

/// Checks that the allocation can be destroyed. Returns its exclusive lock.
pub(crate) fn destroyable(persistent: &Persistent, force: bool) -> Result<DirectoryLock> {
    let name = || persistent.name.clone();
    if !persistent.is_ours() {
        let owner = users::user_named(persistent.owner);
        return Err(Error::NotOurs { name: name(), owner });
    }
    let held = persistent.lock(LockMode::Exclusive)?;
    let uses = Uses::of(persistent)?;
    let is_free = held.is_some();
    let jobs = uses.matching(|state| match state {
        UseState::Running | UseState::Processes(_) => true,
        UseState::Elsewhere => !is_free, // the lock decides
        UseState::Left => false,
    });
    let Some(held) = held.filter(|_| jobs.is_empty()) else {
        return Err(Error::InUse { name: name(), jobs });
    };
    let jobs = uses.matching(|state| *state == UseState::Elsewhere && !held.is_cluster_wide());
    if !jobs.is_empty() {
        let uses = persistent.uses();
        return Err(Error::OutOfSight { name: name(), jobs, uses });
    }
    let undrained = uses.found.iter().filter(|(one, _)| one.stages_out);
    let undrained = undrained.map(|(one, _)| one.to_string());
    let jobs: Vec<_> = undrained.chain(uses.unreadable).collect();
    if !jobs.is_empty() && !force {
        return Err(Error::Undrained { name: name(), jobs });
    }
    Ok(held)
}
