//! Directories of a pool, as root sees them. Each name is looked up in the open directory of the pool, which only root
//! can write, and no link is followed.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};

use forebay_host::files::{self, Directory, Kind, NoQuota};
use forebay_host::system;
use forebay_site::messages::PoolAllocation;
use forebay_site::{Error, Pool, PoolKind, Quota, Site, changeable_parent};

use crate::work::CephQuota;

/// The permissions of an allocation's directory.
const MODE: u32 = 0o700;
/// The same where the members of a group reach the namespace below it.
const SHARED_MODE: u32 = 0o710;

/// A directory in that of each pool that has or had allocations. A mount point without its file system has none.
const MARK: &str = ".forebay-pool";

/// The open directory of a pool.
pub(crate) struct PoolDirectory {
    directory: Directory,
    kind: PoolKind,
    quota: Option<Quota>,
}

/// What journals and directories take, for each copy in or out, besides a part of the capacity.
const OVERHEAD_BYTES: u64 = 16 << 20;
const OVERHEAD_PART: u64 = 64;

/// An attribute that each directory of CephFS has, and no other directory.
const ONLY_CEPHFS: &str = "ceph.dir.rbytes";

impl PoolDirectory {
    /// Opens the directory of a pool of this site.
    ///
    /// # Errors
    /// If this node's configuration has another directory, or somebody else than root could write it.
    pub(crate) fn open(site: &Site, pool: &str, path: &str) -> Result<Self, Error> {
        let pool = site.pool(pool)?;
        if pool.path.as_os_str() != OsStr::new(path) {
            let message = format!(
                "the pool {} is {} here, and {path} on the control host",
                pool.name,
                pool.path.display()
            );
            return Err(Error::new(message)
                .with_hint(format!("make {} the same on all hosts", site.file.display())));
        }
        Self::of(pool)
    }

    /// The same, without a path to compare.
    pub(crate) fn of(pool: &Pool) -> Result<Self, Error> {
        let shown = pool.path.display();
        let directory = Directory::open(&pool.path).map_err(|error| {
            Error::new(format!("the pool {}: {error}", pool.name)).with_hint(format!(
                "is the file system mounted? else, as root: install -d -m 755 {shown}"
            ))
        })?;
        let status = directory.status()?;
        if status.owner != 0 || status.mode & 0o022 != 0 {
            let message = format!(
                "the pool {}: {shown} must belong to root and be closed to other writers",
                pool.name
            );
            return Err(
                Error::new(message).with_hint(format!("chown root {shown}; chmod 755 {shown}"))
            );
        }
        check_parents(pool)?;
        Ok(Self { directory, kind: pool.kind, quota: pool.quota })
    }

    /// Refuses a pool with quotas whose file system has none.
    pub(crate) fn check_quota(&self, pool: &str) -> Result<(), Error> {
        let Some(quota) = self.quota else { return Ok(()) };
        let why_not = match quota {
            Quota::Project => self.directory.no_project_quota()?.map(no_project),
            Quota::Ceph => {
                let found = files::extended_attribute(self.directory.path(), ONLY_CEPHFS)?;
                found.is_none().then_some(("is not on CephFS", "mount CephFS there"))
            }
        };
        let Some((why, hint)) = why_not else { return Ok(()) };
        let (word, path) = (quota.word(), self.directory.path().display());
        let message = format!("the pool {pool} has quota = \"{word}\", but {path} {why}");
        Err(Error::new(message).with_hint(format!("{hint}; or drop quota")))
    }

    /// Limits an allocation. Its stage-out has journals, too, when the job has ended.
    pub(crate) fn limit(
        &self,
        place: &PoolAllocation,
        capacity_bytes: u64,
        is_ended: bool,
    ) -> Result<(), Error> {
        if self.quota != Some(Quota::Project) {
            return Ok(());
        }
        let bytes = with_journals(capacity_bytes, is_ended);
        Ok(self.directory.limit_project(project_of(&place.name)?, bytes)?)
    }

    /// The limits that the owner's process sets; none where the file system is not CephFS.
    pub(crate) fn ceph_quota(&self, capacity_bytes: u64) -> Option<CephQuota> {
        (self.quota == Some(Quota::Ceph)).then(|| CephQuota {
            namespace_bytes: capacity_bytes,
            whole_bytes: with_journals(capacity_bytes, true),
        })
    }

    /// Makes the directory of an allocation and gives it to its owner. One that exists stays.
    pub(crate) fn make(&self, place: &PoolAllocation, capacity_bytes: u64) -> Result<(), Error> {
        match self.directory.make_in(OsStr::new(MARK), MODE) {
            Err(error) if error.already_exists() => {}
            marked => marked?,
        }
        let name = OsStr::new(&place.name);
        match self.directory.make_in(name, MODE) {
            Err(error) if error.already_exists() => {}
            made => made?,
        }
        let made = self.directory.open_in(name)?;
        let owner = made.status()?.owner;
        // A former call was killed between the two steps; nobody but root could put anything into it.
        if owner == 0 {
            if !made.names()?.is_empty() {
                // Root took it, to remove what is in it.
                return Err(Error::new(format!("{} was removed", place.name)));
            }
            self.limit(place, capacity_bytes, false)?;
            if self.quota == Some(Quota::Project) {
                made.set_project(project_of(&place.name)?)?;
            }
            if place.is_shared {
                made.set_mode(SHARED_MODE)?;
            }
            made.give_to(place.user, place.group)?;
        } else if owner != place.user {
            return Err(belongs_to_another(made.path(), owner));
        }
        self.directory.sync()?;
        Ok(())
    }

    /// Whether an allocation was ever made here.
    pub(crate) fn is_marked(&self) -> Result<bool, Error> {
        match self.directory.status_of_name(OsStr::new(MARK)) {
            Err(error) if error.is_not_found() => Ok(false),
            found => Ok(found.map(|found| found.kind == Kind::Directory)?),
        }
    }

    /// Why nothing can be said of a directory that is missing here.
    pub(crate) fn missing_mark_error(&self) -> Error {
        let path = self.directory.path().display();
        let hint = match self.kind {
            PoolKind::Directory => {
                "is the file system of the pool mounted on this node?".to_owned()
            }
            PoolKind::OnNode => {
                format!("is its file system mounted? if it is new and empty: mkdir {path}/{MARK}")
            }
        };
        Error::new(format!("{path} has no {MARK}: it is not the directory of the pool"))
            .with_hint(hint)
    }

    /// Whether the directory of an allocation exists and is its owner's.
    pub(crate) fn check(&self, place: &PoolAllocation) -> Result<(), Error> {
        match self.owner_of(&place.name)? {
            Some(owner) if owner == place.user => Ok(()),
            Some(owner) => Err(belongs_to_another(&self.directory.path().join(&place.name), owner)),
            None => {
                let message = format!(
                    "{} is not visible here",
                    self.directory.path().join(&place.name).display()
                );
                Err(Error::new(message).with_hint(match self.kind {
                    PoolKind::Directory => "is this the same file system as on the staging nodes?",
                    PoolKind::OnNode => "was this node started with empty storage? then it is lost",
                }))
            }
        }
    }

    /// The owner of a directory in the pool; none if there is none.
    pub(crate) fn owner_of(&self, name: &str) -> Result<Option<u32>, Error> {
        match self.directory.status_of_name(OsStr::new(name)) {
            Err(error) if error.is_not_found() => Ok(None),
            Ok(found) if found.kind != Kind::Directory => Err(Error::new(format!(
                "{} is no directory",
                self.directory.path().join(name).display()
            ))),
            found => Ok(Some(found?.owner)),
        }
    }

    /// The owner and the group of a directory in the pool; none if there is none.
    pub(crate) fn user_and_group_of(&self, name: &str) -> Result<Option<(u32, u32)>, Error> {
        if self.owner_of(name)?.is_none() {
            return Ok(None);
        }
        let found = self.directory.status_of_name(OsStr::new(name))?;
        Ok(Some((found.owner, found.group)))
    }

    /// Keeps the key of an engine where only root reads it.
    pub(crate) fn keep_key(&self, name: &str, key: &str) -> Result<(), Error> {
        let path = self.key_path(name);
        if self.key_of(name)?.is_some_and(|known| known == key) {
            return Ok(());
        }
        // It must be whole wherever it is seen, also after a crash.
        let fresh = path.with_extension(format!("key-{}", system::random_text::<8>()?));
        let mut file = files::make_file(&fresh, 0o600)?;
        let written = file.write_all(key.as_bytes()).and_then(|()| file.sync_all());
        let kept =
            files::with_path(written, "write", &fresh).and_then(|()| files::rename(&fresh, &path));
        if kept.is_err() {
            files::remove_if_present(&fresh)?;
        }
        Ok(kept?)
    }

    /// The key; none if there is none of this name.
    pub(crate) fn key_of(&self, name: &str) -> Result<Option<String>, Error> {
        match files::read_to_string(&self.key_path(name)) {
            Err(error) if error.is_not_found() => Ok(None),
            key => Ok(Some(key?)),
        }
    }

    fn key_path(&self, name: &str) -> PathBuf {
        self.directory.path().join(MARK).join(format!("{name}.key"))
    }

    /// Removes all that is in the directory of an allocation, also what members of its group left.
    pub(crate) fn empty(&self, name: &str) -> Result<(), Error> {
        Ok(self.directory.open_in(OsStr::new(name))?.clear_as_root()?)
    }

    /// Removes the directory of an allocation, which is empty.
    pub(crate) fn remove(&self, name: &str) -> Result<(), Error> {
        match self.directory.remove_empty_in(OsStr::new(name)) {
            Err(error) if error.is_not_found() => {}
            removed => removed?,
        }
        files::remove_if_present(&self.key_path(name))?;
        if self.quota == Some(Quota::Project) {
            self.directory.limit_project(project_of(name)?, 0)?;
        }
        self.directory.sync()?;
        Ok(())
    }

    /// Names that could be those of allocations, with their owners.
    pub(crate) fn list(&self) -> Result<Vec<(String, u32)>, Error> {
        let mut listed = Vec::new();
        for (name, kind) in self.directory.kinds()? {
            let Some(name) = name.to_str().filter(|name| is_name(name) && kind == Kind::Directory)
            else {
                continue;
            };
            if let Some(owner) = self.owner_of(name)? {
                listed.push((name.to_owned(), owner));
            }
        }
        Ok(listed)
    }
}

/// Who can rename a part of the path, or exchange a link in it, can put another directory there under running jobs.
fn check_parents(pool: &Pool) -> Result<(), Error> {
    let Some(parent) = changeable_parent(&pool.path, &[0])? else { return Ok(()) };
    let (path, shown) = (pool.path.display(), parent.display());
    let message = format!(
        "the pool {}: {shown}, which leads to {path}, must belong to root and be closed to other writers",
        pool.name
    );
    Err(Error::new(message)
        .with_hint("make the directory of the pool where only root can rename it"))
}

/// A capacity with the journals of stage-in, and those of stage-out when the job has ended.
fn with_journals(capacity_bytes: u64, is_ended: bool) -> u64 {
    let overhead = (OVERHEAD_BYTES + capacity_bytes / OVERHEAD_PART) * (1 + u64::from(is_ended));
    capacity_bytes.saturating_add(overhead)
}

/// Why there are no project quotas, and what helps.
fn no_project(why: NoQuota) -> (&'static str, &'static str) {
    match why {
        NoQuota::NotEnforced => (
            "enforces no project quotas",
            "mount XFS with -o prjquota, or ext4 with its features quota and project",
        ),
        NoQuota::NotAllowed => (
            "lets this process set no quotas",
            "add CAP_SYS_ADMIN to the unit: systemctl edit forebay-noded",
        ),
        NoQuota::OldKernel => ("needs Linux 5.14 for quotas", "use a newer kernel"),
    }
}

/// The project of an allocation: its number, which no other has.
fn project_of(name: &str) -> Result<u32, Error> {
    let number = name.rsplit_once('.').and_then(|(_, number)| number.parse().ok());
    number.filter(|number| *number > 0).ok_or_else(|| {
        Error::new(format!("the number of {name} cannot be that of a project"))
            .with_hint("a project has from 1 to 4294967295")
    })
}

/// The error where an allocation is to be whose name another user has.
pub(crate) fn belongs_to_another(path: &Path, owner: u32) -> Error {
    let owner = forebay_host::users::user_named(owner);
    Error::new(format!("{} belongs to {owner}", path.display()))
        .with_hint("the site looks at it and removes it")
}

/// Whether a name is one that the control host gives: a token, a dot, a number. It becomes a part of paths.
pub(crate) fn is_name(name: &str) -> bool {
    let Some((token, number)) = name.rsplit_once('.') else { return false };
    let are_digits =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    are_digits(number) && (are_digits(token) || forebay_directive::name_error(token).is_none())
}

#[cfg(test)]
mod tests {
    use forebay_host::users;

    use super::*;

    const NOBODY: u32 = 65534;

    fn pool_at(path: &Path) -> Pool {
        Pool {
            name: "flash".to_owned(),
            kind: PoolKind::Directory,
            path: path.to_owned(),
            granularity_bytes: 1,
            quantity: 1,
            directory_granules: 1,
            reserve: 0,
            users: Vec::new(),
            groups: Vec::new(),
            quota: None,
            user_bytes_max: None,
            staging_nodes: Vec::new(),
            stage_bytes_per_s_max: None,
            engine: None,
            redundancy: 1,
        }
    }

    fn place(name: &str) -> PoolAllocation {
        PoolAllocation {
            pool: "flash".into(),
            path: String::new(),
            name: name.into(),
            user: NOBODY,
            group: NOBODY,
            is_shared: false,
            access: forebay_directive::AccessMode::Striped,
            engine: None,
        }
    }

    #[test]
    fn names_are_a_token_and_a_number() {
        for name in ["12.3", "proj1.4", "a.b.5", "a-b_c.6"] {
            assert!(is_name(name), "{name}");
        }
        for name in [
            "", ".", "..", "12", "12.", ".3", "../x.3", "a/b.3", "12.3/..", "12.x", "1a.3", "a\n.3",
        ] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn directory_is_the_owners_and_a_link_or_another_users_directory_is_refused() {
        if !users::is_root() {
            return; // only root gives directories away
        }
        let scratch = tempfile::tempdir().expect("tempdir");
        let error = |result: Result<(), Error>| result.expect_err("refused").to_string();
        files::set_mode(scratch.path(), 0o777).expect("mode");
        let pool = pool_at(scratch.path());
        assert!(
            error(PoolDirectory::of(&pool).map(drop)).contains("must belong to root and be closed")
        );
        files::set_mode(scratch.path(), 0o755).expect("mode");
        let opened = PoolDirectory::of(&pool).expect("open");
        for _ in 0..2 {
            opened.make(&place("1.1"), 1).expect("made");
        }
        let made = files::status_of_name(&scratch.path().join("1.1")).expect("made");
        assert_eq!((made.owner, made.group, made.mode), (NOBODY, NOBODY, 0o700));
        // A former call was killed before it gave the directory away.
        files::make_directory(&scratch.path().join("2.1"), 0o700).expect("made");
        opened.make(&place("2.1"), 1).expect("given");
        opened.check(&place("2.1")).expect("nobody's");
        files::set_owner_of_name(&scratch.path().join("2.1"), Some(1), None).expect("given");
        assert!(error(opened.make(&place("2.1"), 1)).contains("2.1 belongs to daemon"));
        assert!(error(opened.check(&place("2.1"))).contains("2.1 belongs to daemon"));
        files::make_link(Path::new("1.1"), &scratch.path().join("3.1")).expect("linked");
        opened.make(&place("3.1"), 1).expect_err("a link");
        assert!(error(opened.check(&place("3.1"))).contains("is no directory"));
        assert!(error(opened.check(&place("4.1"))).contains("4.1 is not visible here"));
        assert_eq!(opened.list().expect("listed").len(), 2);
        opened.remove("1.1").expect("removed");
        opened.remove("1.1").expect("again");
    }
}
