//! Finds, creates, lists and destroys persistent allocations by name.
//! Assumes that stores can vanish with their machine; a registry of the user names those. Never removes
//! files itself: `destroy.rs` does.

use std::path::{Path, PathBuf};

use forebay_directive::name_error;
use forebay_host::messages::Messages;
use forebay_host::{clock, disks, files, system, users};
use forebay_record::reserved_bytes;
use forebay_store::persistent::{
    AllocationRecord, NewAllocation, Persistent, StoreListing, Unfinished,
};
use forebay_store::{Grant, SHARED_MEMORY, Store};
use indicatif::HumanBytes;

use crate::destroy::Detached;
use crate::error::{Error, MissingAllocation, Result};
use crate::{lifetime, registry};

/// The stores to search for persistent allocations.
#[derive(Debug, Clone, Copy, Default)]
pub struct StoreSearch<'a> {
    /// `--store`.
    pub named: Option<&'a Path>,
    /// The site's setting.
    pub site: Option<&'a Path>,
}

/// Options of a new allocation.
#[derive(Debug, Clone, Copy)]
pub struct NewPersistent<'a> {
    /// Its name.
    pub name: &'a str,
    /// Requested bytes.
    pub asked_bytes: u64,
    /// Fail if the store has less.
    pub strict_capacity: bool,
    /// Permission bits of its namespace.
    pub mode: u32,
    /// Name or number of its group.
    pub group: Option<&'a str>,
    /// Seconds after which no job can begin to use it.
    pub expires_after_s: Option<u64>,
    /// Id and script of the job that creates it.
    pub job: Option<(&'a str, &'a Path)>,
}

/// The persistent allocations in the searched stores.
#[derive(Debug, Default)]
pub struct Listing {
    /// Existing allocations.
    pub found: Vec<Persistent>,
    /// Leftovers, and allocations being created.
    pub unfinished: Vec<Unfinished>,
    /// Missing allocations that the user created.
    pub missing: Vec<MissingAllocation>,
}

/// What was destroyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destroyed {
    /// The allocation with its contents.
    Allocation,
    /// Leftovers of a killed process.
    Leftovers,
    /// The registry entry of a missing allocation.
    RegistryEntry,
}

impl StoreSearch<'_> {
    /// The stores of the user, the site and the machine, in this order. The last one is in memory.
    fn directories(&self) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for named in [self.named, self.site].into_iter().filter_map(directory) {
            found.push(path_of(named)?);
        }
        for disk in disks::nvme_directories()? {
            found.push(path_of(&disk.directory)?);
        }
        found.extend(path_of(Path::new(SHARED_MEMORY)).ok()); // some machines have none
        Ok(found)
    }

    /// These stores and the stores in the registry, without duplicates.
    fn all_directories(&self) -> Result<Vec<PathBuf>> {
        let mut all = self.directories()?;
        for known in registry::all()? {
            let store = files::parent_of(&known.root);
            if files::status(store).is_ok() {
                all.push(store.to_owned());
            }
        }
        let mut each = Vec::new();
        for directory in all {
            if !each.contains(&directory) {
                each.push(directory);
            }
        }
        Ok(each)
    }

    /// Lists all allocations, or those of the named store.
    pub fn list(&self) -> Result<Listing> {
        let mut listing = Listing::default();
        let stores = match directory(self.named) {
            Some(named) => vec![path_of(named)?],
            None => {
                listing.missing = registry::missing()?;
                self.all_directories()?
            }
        };
        for store in stores {
            let contents = StoreListing::of(&store)?;
            listing.found.extend(contents.found);
            listing.unfinished.extend(contents.unfinished);
        }
        Ok(listing)
    }

    /// Finds an allocation: in the named store, else the only one, or the only one of this user.
    ///
    /// # Errors
    /// If there is none, or several match.
    pub fn find(&self, name: &str) -> Result<Persistent> {
        let stores = self.all_directories()?;
        let named = directory(self.named).and(stores.first());
        let mut found = Vec::new();
        for store in &stores {
            if let Some(persistent) = Persistent::find(store, name)? {
                if Some(store) == named {
                    return Ok(persistent);
                }
                found.push(persistent);
            }
        }
        let is_ours = |one: &Persistent| one.owner == users::user_id();
        let ours = found.iter().filter(|one| is_ours(one)).count();
        if ours == 0 {
            // Another user's allocation of this name is not the missing one.
            let is_it = |one: &MissingAllocation| {
                one.name == name && (found.is_empty() || one.host.is_none())
            };
            if let Some(missing) = registry::missing()?.into_iter().find(is_it) {
                return Err(Error::Missing(missing));
            }
        }
        if found.len() > 1 && ours == 1 {
            found.retain(is_ours); // other users can take any name in a shared store
        }
        match found.len() {
            0 => Err(Self::unknown(name, stores)),
            1 => Ok(found.remove(0)),
            _ => Err(Error::Several {
                name: name.to_owned(),
                stores: found.iter().map(|one| one.store().to_owned()).collect(),
            }),
        }
    }

    fn unknown(name: &str, stores: Vec<PathBuf>) -> Error {
        let mut names = Vec::new();
        for store in &stores {
            match StoreListing::of(store) {
                Ok(contents) => names.extend(contents.found.into_iter().map(|one| one.name)),
                Err(error) => return error.into(),
            }
        }
        Error::Unknown { name: name.to_owned(), stores, names }
    }

    /// Chooses the store of a new allocation and computes the capacity.
    fn choose(&self, asked_bytes: u64, strict: bool) -> Result<(PathBuf, bool, Grant)> {
        let store = match Store::choose(directory(self.named), directory(self.site))?.0 {
            Store::Memory { .. } => Store::directory(Path::new(SHARED_MEMORY))?,
            in_directory => in_directory,
        };
        let in_memory = store.in_memory();
        let grant = grant(&store, asked_bytes, reserved_bytes)?;
        let name = store.to_string();
        if strict && grant.capacity_bytes < asked_bytes {
            return Err(Error::LessThanAsked {
                asked_bytes,
                usable_bytes: grant.usable_bytes,
                store: name,
            });
        }
        Ok((PathBuf::from(name), in_memory, grant))
    }

    /// Creates an allocation.
    ///
    /// # Errors
    /// If it cannot be created; no leftovers remain.
    pub fn create(&self, new: &NewPersistent, watcher: &dyn Messages) -> Result<Persistent> {
        let (store, in_memory, grant) = self.check_new(new)?;
        if let Err(error) = sweep(&store, None) {
            watcher
                .warning(&format!("something left over in the store cannot be removed: {error}"));
        }
        let group = new.group.map(group_number).transpose()?;
        let capacity_bytes = grant.capacity_bytes;
        if capacity_bytes < new.asked_bytes {
            let (asked, given) = (HumanBytes(new.asked_bytes), HumanBytes(capacity_bytes));
            watcher.warning(&format!("{asked} are asked for {}; the store has {given}", new.name));
        }
        let now_s = clock::unix_s();
        let wanted = NewAllocation {
            about: AllocationRecord {
                name: new.name.to_owned(),
                capacity_bytes,
                created_unix_s: now_s,
                expires_unix_s: new.expires_after_s.map(|after| now_s.saturating_add(after)),
                host: system::hostname(),
                job_id: new.job.map(|(id, _)| id.to_owned()),
                script: new.job.map(|(_, script)| script.to_string_lossy().into_owned()),
            },
            mode: new.mode,
            group,
        };
        let made = match Persistent::create(&store, &wanted) {
            Err(forebay_store::Error::PersistentExists(_)) => {
                return Err(self.exists(&store, new.name)?);
            }
            made => made?,
        };
        if let Err(error) = registry::register(&made) {
            watcher.warning(&format!("only --store {} finds it: {error}", store.display()));
        }
        let size = HumanBytes(capacity_bytes);
        watcher.note(&format!(
            "persistent allocation {} of {size} made in {}",
            new.name,
            store.display()
        ));
        if in_memory {
            watcher.warning(&lifetime::in_memory(new.name, &store));
        }
        Ok(made)
    }

    /// Makes all checks before a creation.
    pub(crate) fn check_new(&self, new: &NewPersistent) -> Result<(PathBuf, bool, Grant)> {
        if let Some(fault) = name_error(new.name) {
            let name = new.name.to_owned();
            return Err(Error::BadName { name, fault });
        }
        let chosen = self.choose(new.asked_bytes, new.strict_capacity)?;
        if Persistent::find(&chosen.0, new.name)?.is_some() {
            return Err(self.exists(&chosen.0, new.name)?);
        }
        Ok(chosen)
    }

    fn exists(&self, store: &Path, name: &str) -> Result<Error> {
        let other = Persistent::find(store, name)?;
        Ok(match other {
            Some(other) => Error::Exists(Box::new(other)),
            None => forebay_store::Error::PersistentExists(name.to_owned()).into(),
        })
    }

    /// Destroys an allocation with its contents, or its leftovers. With `force` it also destroys
    /// data that a killed job was to stage out.
    ///
    /// # Errors
    /// If another user owns it, a job uses it, or data in it are to be staged out.
    pub fn destroy(&self, name: &str, force: bool) -> Result<Destroyed> {
        match self.find(name) {
            Ok(found) => {
                Detached::of(found, force)?.remove()?;
                Ok(Destroyed::Allocation)
            }
            Err(error) => self.destroy_remains(name, force, error),
        }
    }

    /// Removes leftovers of a missing allocation. `error` says why it was not found.
    fn destroy_remains(&self, name: &str, force: bool, error: Error) -> Result<Destroyed> {
        let (Error::Missing(_) | Error::Unknown { .. }) = &error else {
            return Err(error);
        };
        let mut swept = false;
        for store in self.all_directories()? {
            swept |= sweep(&store, Some(name))?;
        }
        match error {
            _ if swept => Ok(Destroyed::Leftovers),
            Error::Missing(missing) if missing.host.is_none() && (missing.in_memory || force) => {
                registry::unregister(&missing.root)?;
                Ok(Destroyed::RegistryEntry)
            }
            error => Err(error),
        }
    }
}

/// Removes the user's leftovers in a store, of one name or all. Returns whether there were any.
fn sweep(store: &Path, name: Option<&str>) -> Result<bool> {
    let swept = StoreListing::sweep(store, name)?;
    for root in &swept {
        // The link stays if an allocation of this name exists again.
        if files::status_of_name(root).is_err() {
            registry::unregister(root)?;
        }
    }
    Ok(!swept.is_empty())
}

/// The capacity of a new allocation. `reserved_bytes` is memory that the allocations of jobs may still use.
fn grant(
    store: &Store,
    asked_bytes: u64,
    reserved_bytes: impl FnOnce() -> forebay_host::Result<u64>,
) -> Result<Grant> {
    let reserved_bytes = if store.in_memory() { reserved_bytes()? } else { 0 };
    Ok(store.grant(asked_bytes, reserved_bytes)?)
}

/// Excludes a job's own memory, which ends with the job and cannot hold persistent allocations.
fn directory(named: Option<&Path>) -> Option<&Path> {
    named.filter(|named| !matches!(named.to_str(), Some("memory" | "memory:huge")))
}

/// The path of a store with links resolved.
fn path_of(directory: &Path) -> Result<PathBuf> {
    Ok(Store::directory(directory)?.to_string().into())
}

fn group_number(group: &str) -> Result<u32> {
    let found = users::group_id(group)?;
    found.ok_or_else(|| Error::NoGroup(group.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_promised_to_jobs_is_not_granted() {
        let granted = |in_memory, promised_bytes| {
            let store = Store::Directory { path: "/".into(), in_memory };
            grant(&store, 1, || Ok(promised_bytes)).expect("granted").capacity_bytes
        };
        assert_eq!((granted(true, 0), granted(true, u64::MAX)), (1, 0));
        assert_eq!(granted(false, u64::MAX), 1, "a disk holds no memory of jobs");
    }
}
