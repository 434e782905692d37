//! Persistent allocations: the directory `forebay-persistent-NAME` in a store, with a record. All
//! users can read the record. Only the owner or a group can access the namespace. A temporary name
//! during creation and removal makes both atomic, and identifies leftovers of killed processes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay_host::directory_lock::{DirectoryLock, LockMode};
use forebay_host::files::{self, Kind};
use forebay_host::{clock, users};
use serde::{Deserialize, Serialize};

use crate::Error;

/// The prefix of the directory of an allocation.
const PREFIX: &str = "forebay-persistent-";
/// The prefix during creation and removal. The name, the start time and the process follow. Names
/// of allocations cannot contain `~`.
const UNFINISHED: &str = "forebay-unfinished~";
/// The time limit of a creation, used where locks do not show its process.
const UNSEEN_MS_MAX: u128 = 600_000;

/// The maximum number of alternative names if the original name is in use.
const OTHER_NAMES_MAX: u32 = 100;

const RECORD: &str = "allocation.json";
const NAMESPACE: &str = "striped";
const USES: &str = "uses";

/// The default mode of a namespace.
pub const OWNER_ALONE: u32 = 0o700;
/// Permission bits of one that a group uses, too.
pub const OWNER_AND_GROUP: u32 = 0o770;

/// The content of an allocation's record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocationRecord {
    /// Its name.
    pub name: String,
    /// Its capacity in bytes. Not enforced.
    pub capacity_bytes: u64,
    /// The time of creation, in seconds since 1970.
    pub created_unix_s: u64,
    /// The time after which no job may start to use it; none for no limit.
    pub expires_unix_s: Option<u64>,
    /// The machine that created it.
    pub host: String,
    /// The job that created it; none if a user created it directly.
    pub job_id: Option<String>,
    /// The script of that job.
    pub script: Option<String>,
}

/// A request to create an allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAllocation {
    /// The content of its record.
    pub about: AllocationRecord,
    /// Permission bits of the namespace.
    pub mode: u32,
    /// The ID of the group to give it to.
    pub group: Option<u32>,
}

/// An existing allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Persistent {
    /// Its name.
    pub name: String,
    /// The ID of the owner.
    pub owner: u32,
    /// The content of its record, or the reason why it is invalid.
    pub about: Result<AllocationRecord, String>,
    root: PathBuf,
}

/// A leftover of a killed process, or an allocation that is being created or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfinished {
    /// The name of the allocation.
    pub name: String,
    /// The ID of the owner.
    pub owner: u32,
    /// The path of its directory.
    pub path: PathBuf,
    began_unix_ms: u128,
}

/// The persistent allocations in a store.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct StoreListing {
    /// Complete allocations, sorted by name.
    pub found: Vec<Persistent>,
    /// Incomplete allocations.
    pub unfinished: Vec<Unfinished>,
}

impl StoreListing {
    /// Lists the persistent allocations of a store.
    pub fn of(store: &Path) -> Result<Self, Error> {
        let mut contents = Self::default();
        let mut entries = files::kinds_in(store)?;
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        for (file_name, kind) in entries {
            let (Some(file_name), Kind::Directory) = (file_name.to_str(), kind) else {
                continue;
            };
            if let Some(name) = file_name.strip_prefix(PREFIX) {
                contents.found.extend(Persistent::find(store, name)?);
            } else if let Some(rest) = file_name.strip_prefix(UNFINISHED) {
                contents.unfinished.extend(Unfinished::of(store, rest));
            }
        }
        Ok(contents)
    }

    /// Removes incomplete allocations that this user may remove, of one name or of all. Returns
    /// the original directories of these allocations.
    pub fn sweep(store: &Path, name: Option<&str>) -> Result<Vec<PathBuf>, Error> {
        let mut swept = Vec::new();
        for left in Self::of(store)?.unfinished {
            let wanted = name.is_none_or(|name| name == left.name) && is_ours(left.owner);
            if wanted && left.remove()? {
                swept.push(root_in(store, &left.name));
            }
        }
        Ok(swept)
    }
}

impl Unfinished {
    fn of(store: &Path, rest: &str) -> Option<Self> {
        let path = store.join(format!("{UNFINISHED}{rest}"));
        let mut parts = rest.split('~');
        let (name, began) = (parts.next()?, parts.next()?);
        Some(Self {
            name: name.to_owned(),
            owner: files::status_of_name(&path).ok()?.owner,
            began_unix_ms: began.parse().ok()?,
            path,
        })
    }

    /// Removes the leftover. Returns false if it is gone or its process may still run.
    fn remove(&self) -> Result<bool, Error> {
        let age_ms = clock::unix_milliseconds().saturating_sub(self.began_unix_ms);
        let held = match DirectoryLock::take(&self.path, LockMode::Exclusive) {
            Err(error) if error.is_not_found() => return Ok(false),
            held => held?,
        };
        let Some(held) = held else {
            return Ok(false);
        };
        let age_ms_min = match held.is_cluster_wide() {
            true => crate::unrecorded_ms_max(),
            false => UNSEEN_MS_MAX,
        };
        if age_ms < age_ms_min {
            return Ok(false);
        }
        match files::remove_tree(&self.path) {
            Err(error) if error.is_not_found() => Ok(false),
            removed => Ok(removed.map(|()| true)?),
        }
    }
}

impl Persistent {
    /// The allocation with this name in a store.
    pub fn find(store: &Path, name: &str) -> Result<Option<Self>, Error> {
        let root = root_in(store, name);
        let status = match files::status_of_name(&root) {
            Err(error) if error.is_not_found() => return Ok(None),
            status => status?,
        };
        Ok((status.kind == Kind::Directory).then(|| Self {
            name: name.to_owned(),
            owner: status.owner,
            about: read(&root.join(RECORD), status.owner, name),
            root,
        }))
    }

    /// Creates an allocation in a store.
    ///
    /// # Errors
    /// If the name is in use, or a call of the operating system fails. Leaves nothing behind.
    pub fn create(store: &Path, wanted: &NewAllocation) -> Result<Self, Error> {
        let name = &wanted.about.name;
        let root = root_in(store, name);
        if files::status_of_name(&root).is_ok() {
            return Err(Error::PersistentExists(name.clone()));
        }
        let fresh = unfinished_in(store, name);
        files::make_directory(&fresh, 0o700)?;
        let made = fill(&fresh, wanted).and_then(|held| {
            // Fails if another process has created it meanwhile, because that has a record.
            files::rename(&fresh, &root)?;
            drop(held);
            Ok(files::sync_directory(store)?)
        });
        if let Err(error) = made {
            if files::status_of_name(&fresh).is_ok() {
                files::remove_tree(&fresh)?;
            }
            if files::status_of_name(&root).is_ok() {
                return Err(Error::PersistentExists(name.clone()));
            }
            return Err(error);
        }
        Ok(Self {
            name: name.clone(),
            owner: users::user_id(),
            about: Ok(wanted.about.clone()),
            root,
        })
    }

    /// The directory of the allocation.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Its store.
    pub fn store(&self) -> &Path {
        self.root.parent().unwrap_or(&self.root)
    }

    /// The directory of its namespace, without trailing slash.
    pub fn namespace(&self) -> PathBuf {
        namespace_in(&self.root)
    }

    /// The directory that records its users.
    pub fn uses(&self) -> PathBuf {
        self.root.join(USES)
    }

    /// Whether this user may destroy it.
    pub fn is_ours(&self) -> bool {
        is_ours(self.owner)
    }

    /// Whether this user may read it.
    pub fn is_open(&self) -> bool {
        users::is_readable_dir(&self.namespace())
    }

    /// The permission bits and the group ID of its namespace.
    pub fn rights(&self) -> Result<(u32, u32), Error> {
        let namespace = self.namespace();
        let mode = files::status(&namespace)?.mode;
        Ok((mode, users::group_of(&namespace)?))
    }

    /// Whether it has expired.
    pub fn is_expired(&self) -> bool {
        let now = clock::unix_s();
        let expires = self.about.as_ref().ok().and_then(|about| about.expires_unix_s);
        expires.is_some_and(|expires| expires <= now)
    }

    /// The bytes in use; none if this user may not read it.
    pub fn used_bytes(&self) -> Option<u64> {
        self.used_bytes_within(Duration::MAX).map(|(used, _)| used)
    }

    /// The same of what is seen in this time, and whether that is all.
    pub fn used_bytes_within(&self, time_max: Duration) -> Option<(u64, bool)> {
        self.is_open().then(|| files::tree_bytes_within(&self.namespace(), time_max))
    }

    /// Locks it until the result is dropped. None if a lock conflicts or the allocation was
    /// destroyed.
    pub fn lock(&self, mode: LockMode) -> Result<Option<DirectoryLock>, Error> {
        match DirectoryLock::take(&self.root, mode) {
            Err(error) if error.is_not_found() => Ok(None),
            held => Ok(held?.filter(|held| held.is_at(&self.root))),
        }
    }

    /// Renames it to a temporary name, and returns that path, for removal. Requires an exclusive
    /// lock. Until its removal it is listed as [`Unfinished`].
    pub fn withdraw(&self) -> Result<PathBuf, Error> {
        let doomed = unfinished_in(self.store(), &self.name);
        files::rename(&self.root, &doomed)?;
        if let Err(error) = files::sync_directory(self.store()) {
            self.restore(&doomed)?;
            return Err(error.into());
        }
        Ok(doomed)
    }

    /// Restores the name of a withdrawn allocation, or a similar name if it is in use. Returns its
    /// directory.
    pub fn restore(&self, doomed: &Path) -> Result<PathBuf, Error> {
        let mut root = self.root.clone();
        let mut others = 0;
        // Fails if another process has created it meanwhile, because that has a record.
        while let Err(error) = files::rename(doomed, &root) {
            if others == OTHER_NAMES_MAX || files::status_of_name(&root).is_err() {
                return Err(error.into());
            }
            others += 1;
            root = root_in(self.store(), &format!("{}.{others}", self.name));
        }
        Ok(root)
    }
}

/// The directory of the namespace of the allocation at `root`.
pub fn namespace_in(root: &Path) -> PathBuf {
    root.join(NAMESPACE)
}

fn root_in(store: &Path, name: &str) -> PathBuf {
    store.join(format!("{PREFIX}{name}"))
}

fn unfinished_in(store: &Path, name: &str) -> PathBuf {
    let (now, process) = (clock::unix_milliseconds(), std::process::id());
    store.join(format!("{UNFINISHED}{name}~{now}~{process}"))
}

fn is_ours(owner: u32) -> bool {
    let user = users::user_id();
    user == 0 || user == owner
}

fn read(record: &Path, owner: u32, name: &str) -> Result<AllocationRecord, String> {
    let text = files::read_record(record, Some(owner)).map_err(|error| error.to_string())?;
    let about: AllocationRecord = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    if about.name == name {
        return Ok(about);
    }
    Err(format!("it is the record of {}", about.name))
}

/// Creates the content of an allocation.
fn fill(root: &Path, wanted: &NewAllocation) -> Result<DirectoryLock, Error> {
    let taken = || std::io::Error::other("somebody else has locked it");
    let held = DirectoryLock::take(root, LockMode::Exclusive)?.ok_or_else(taken);
    let held = files::with_path(held, "lock", root)?;
    let (namespace, uses) = (namespace_in(root), root.join(USES));
    files::make_directory(&namespace, 0o700)?;
    files::make_directory(&uses, 0o700)?;
    for directory in [&namespace, &uses] {
        if let Some(group) = wanted.group {
            users::give_to_group(directory, group)?;
        }
    }
    // New files in it belong to the group, too.
    let of_group = if wanted.group.is_some() { 0o2000 } else { 0 };
    files::set_mode(&namespace, wanted.mode | of_group)?;
    files::set_mode(&uses, mode_of_uses(wanted.mode))?;
    if wanted.mode != OWNER_ALONE {
        // Otherwise the owner could not remove files in directories that others create.
        users::share_with_owner(&namespace, users::user_id(), wanted.mode)?;
    }
    let record = root.join(RECORD);
    files::write_json_as(&record, &root.join("allocation.fresh"), &wanted.about, 0o644)?;
    files::set_mode(root, 0o755)?;
    files::sync_directory(root)?;
    Ok(held)
}

/// Users of the namespace may create their own entries, and remove only their own.
fn mode_of_uses(mode: u32) -> u32 {
    let class = |bits: u32| if mode & bits == 0 { 0 } else { bits };
    0o1700 | class(0o070) | class(0o007)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(name: &str) -> NewAllocation {
        let about = AllocationRecord {
            name: name.into(),
            capacity_bytes: 1 << 30,
            created_unix_s: 1,
            expires_unix_s: None,
            host: "here".into(),
            job_id: None,
            script: None,
        };
        NewAllocation { about, mode: OWNER_ALONE, group: None }
    }

    #[test]
    fn persistent_allocation_appears_complete_and_private() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let store = scratch.path();
        let made = Persistent::create(store, &wanted("a.b-c")).expect("made");
        assert_eq!(Persistent::find(store, "a.b-c").expect("look"), Some(made.clone()));
        assert_eq!(files::status(&made.namespace()).expect("namespace").mode, 0o700);
        assert_eq!(files::status(made.root()).expect("root").mode, 0o755);
        let again = Persistent::create(store, &wanted("a.b-c")).expect_err("taken");
        assert!(matches!(again, Error::PersistentExists(name) if name == "a.b-c"));
        assert_eq!(StoreListing::of(store).expect("list").found, std::slice::from_ref(&made));
        assert!(made.lock(LockMode::Exclusive).expect("lock").is_some());
        let doomed = made.withdraw().expect("withdrawn");
        let contents = StoreListing::of(store).expect("list");
        assert_eq!((contents.found, contents.unfinished[0].path.clone()), (Vec::new(), doomed));
        assert!(made.lock(LockMode::Shared).expect("gone").is_none());
    }

    #[test]
    fn withdrawn_allocation_is_restored_under_its_name_or_a_similar_one() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let store = scratch.path();
        let made = Persistent::create(store, &wanted("a")).expect("made");
        let data = |root: &Path| files::read_to_string(&namespace_in(root).join("data"));
        files::write_atomically(&made.namespace().join("data"), &store.join("x"), b"precious")
            .expect("data");
        let doomed = made.withdraw().expect("withdrawn");
        assert_eq!(made.restore(&doomed).expect("back"), made.root());
        assert_eq!(data(made.root()).expect("data"), "precious");
        let doomed = made.withdraw().expect("withdrawn");
        let elsewhere = tempfile::tempdir_in(store).expect("tempdir");
        let another = Persistent::create(elsewhere.path(), &wanted("a")).expect("made");
        files::rename(another.root(), made.root()).expect("in its place");
        let other = made.restore(&doomed).expect("back");
        assert_eq!(data(&other).expect("data"), "precious");
        let found = StoreListing::of(store).expect("list").found;
        let about: Vec<_> = found.iter().map(|one| &one.about).collect();
        assert_eq!(found[1].root(), other);
        assert_eq!(about[1], &Err("it is the record of a".to_owned())); // no job can use it
    }

    #[test]
    fn group_can_register_use_of_a_shared_allocation() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let mut shared = wanted("g");
        shared.mode = 0o750;
        shared.group = Some(users::group_of(scratch.path()).expect("group"));
        let made = Persistent::create(scratch.path(), &shared).expect("made");
        assert_eq!(files::status(&made.namespace()).expect("namespace").mode, 0o2750);
        assert_eq!(files::status(&made.uses()).expect("uses").mode, 0o1770);
    }

    #[test]
    fn partial_allocation_is_removed_unless_it_is_locked() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let store = scratch.path();
        let old = store.join(format!("{UNFINISHED}p~5~1"));
        let busy = store.join(format!("{UNFINISHED}q~5~1"));
        let young = unfinished_in(store, "r");
        for path in [&old, &busy, &young] {
            files::make_directories(&path.join("striped"), 0o700).expect("mkdir");
        }
        let held = DirectoryLock::take(&busy, LockMode::Exclusive).expect("lock");
        let sweep = |name| StoreListing::sweep(store, name).expect("sweep");
        assert_eq!(sweep(Some("other")), Vec::<PathBuf>::new());
        assert_eq!(sweep(None), [root_in(store, "p")]);
        drop(held);
        let left = StoreListing::of(store).expect("list").unfinished;
        let names: Vec<_> = left.iter().map(|left| left.name.as_str()).collect();
        assert_eq!(names, ["q", "r"]);
    }

    #[test]
    fn damaged_or_foreign_record_is_reported() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let made = Persistent::create(scratch.path(), &wanted("a")).expect("made");
        let record = made.root().join(RECORD);
        let about = || {
            let found = Persistent::find(scratch.path(), "a").expect("look");
            found.expect("there").about
        };
        files::remove_file(&record).expect("removed");
        assert!(about().expect_err("gone").contains("No such file"));
        let fresh = made.root().join("x");
        files::write_atomically(&record, &fresh, b"{\"name\": \"a\"}").expect("written");
        assert!(about().expect_err("damaged").contains("missing field"));
        let other = serde_json::to_vec(&wanted("b").about).expect("text");
        files::write_atomically(&record, &fresh, &other).expect("written");
        assert_eq!(about().expect_err("another's"), "it is the record of b");
    }
}
