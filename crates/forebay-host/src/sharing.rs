//! What several users or processes share: names of users and groups, rights, locks of directories.

use std::fs::File;
use std::path::Path;

use nix::unistd::{Gid, Group, Uid, User};
use rustix::fs::{Access, FlockOperation, OFlags};
use rustix::io::Errno;

use crate::{Result, on};

/// Name of a user; the number where none is listed.
#[must_use]
pub fn user_named(id: u32) -> String {
    let found = User::from_uid(Uid::from_raw(id)).ok().flatten();
    found.map_or_else(|| id.to_string(), |user| user.name)
}

/// Number of a group that is given by its name or number; none if there is none of that name.
///
/// # Errors
/// If the list of groups cannot be asked.
pub fn group_id(group: &str) -> Result<Option<u32>> {
    if let Ok(number) = group.parse() {
        return Ok(Some(number));
    }
    let found = Group::from_name(group).map_err(std::io::Error::from);
    let found = on(found, "look up the group", Path::new(group))?;
    Ok(found.map(|group| group.gid.as_raw()))
}

/// Name of a group; the number where none is listed.
#[must_use]
pub fn group_named(id: u32) -> String {
    let found = Group::from_gid(Gid::from_raw(id)).ok().flatten();
    found.map_or_else(|| id.to_string(), |group| group.name)
}

/// Gives a file or directory to a group.
///
/// # Errors
/// As `chown(2)`: an ordinary user may name his own groups only.
pub fn give_to_group(path: &Path, group: u32) -> Result<()> {
    let given = std::os::unix::fs::chown(path, None, Some(group));
    on(given, "give to a group", path)
}

/// The group of a file or directory.
///
/// # Errors
/// As `stat(2)`.
pub fn group_of(path: &Path) -> Result<u32> {
    use std::os::unix::fs::MetadataExt;
    on(std::fs::metadata(path), "look at", path).map(|found| found.gid())
}

/// Sees to it that what others make in a directory is its owner's too, and has its rights for the group and
/// for others, whatever their umask: by an access control list that is inherited (acl(5)). Where the file
/// system has none, nothing is done.
///
/// # Errors
/// As `setxattr(2)`.
pub fn share_with_owner(directory: &Path, owner: u32, mode: u32) -> Result<()> {
    const VERSION: u32 = 2; // linux/posix_acl_xattr.h; the numbers are little-endian
    const NOBODY_ELSE: u32 = u32::MAX;
    const ALL: u16 = 0o7;
    let bits = |shift: u32| u16::try_from((mode >> shift) & 0o7).unwrap_or(0);
    let entries: [(u16, u16, u32); 5] = [
        (0x01, ALL, NOBODY_ELSE),     // whoever made it
        (0x02, ALL, owner),           // this user
        (0x04, bits(3), NOBODY_ELSE), // its group
        (0x10, ALL, NOBODY_ELSE),     // the most that the two before can have
        (0x20, bits(0), NOBODY_ELSE), // others
    ];
    let mut list = VERSION.to_le_bytes().to_vec();
    for (who, rights, id) in entries {
        list.extend(who.to_le_bytes());
        list.extend(rights.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    let flags = rustix::fs::XattrFlags::empty();
    match rustix::fs::setxattr(directory, "system.posix_acl_default", &list, flags) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        set => on(set, "set what is inherited in", directory),
    }
}

/// May we look into this directory and read what is in it?
#[must_use]
pub fn may_enter(directory: &Path) -> bool {
    rustix::fs::access(directory, Access::READ_OK | Access::EXEC_OK).is_ok()
}

/// How a directory is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Others may share it.
    Shared,
    /// Nobody else has it.
    Alone,
}

/// A directory that is locked until this is dropped or we end, however we end.
#[derive(Debug)]
pub struct Held {
    directory: File,
    is_seen_by_all: bool,
}

/// File systems that one machine alone has, after linux/magic.h and their own headers: ext, XFS, Btrfs, ZFS, F2FS,
/// Bcachefs, overlay, tmpfs, ramfs. Others may be had by several machines, and may keep a lock from all but one
/// (Lustre with `localflock`, NFS with `local_lock`), which cannot be asked.
const OF_ONE_MACHINE: [u64; 9] = [
    0xef53,
    0x5846_5342,
    0x9123_683e,
    0x2fc1_2fc1,
    0xf2f5_2010,
    0xca45_1a4e,
    0x794c_7630,
    0x0102_1994,
    0x8584_58f6,
];

impl Held {
    /// Locks a directory; none if somebody has it in a way that excludes this one. Where the file system
    /// has no locks, nothing is locked.
    ///
    /// # Errors
    /// As `open(2)` and `flock(2)`.
    pub fn of(directory: &Path, hold: Hold) -> Result<Option<Self>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::open(directory, flags, rustix::fs::Mode::empty());
        let file = File::from(on(opened, "open", directory)?);
        let operation = match hold {
            Hold::Shared => FlockOperation::NonBlockingLockShared,
            Hold::Alone => FlockOperation::NonBlockingLockExclusive,
        };
        let is_locked = match rustix::fs::flock(&file, operation) {
            Err(Errno::WOULDBLOCK) => return Ok(None),
            // NFS locks only what is open to write, which no directory is.
            Err(Errno::NOSYS | Errno::NOLCK | Errno::OPNOTSUPP | Errno::BADF) => false,
            locked => on(locked, "lock", directory).map(|()| true)?,
        };
        let found = rustix::fs::fstatfs(&file);
        let found = on(found, "ask for the file system of", directory)?;
        let kind = u64::try_from(found.f_type).unwrap_or(0);
        Ok(Some(Self {
            directory: file,
            is_seen_by_all: is_locked && OF_ONE_MACHINE.contains(&kind),
        }))
    }

    /// Does everybody who may have the directory see this lock, whatever machine he is on?
    #[must_use]
    pub fn is_seen_by_all(&self) -> bool {
        self.is_seen_by_all
    }

    /// Is this still the directory of that name, not one that was put in its place?
    #[must_use]
    pub fn is_at(&self, directory: &Path) -> bool {
        use std::os::unix::fs::MetadataExt;
        let number = |found: &std::fs::Metadata| (found.dev(), found.ino());
        let (ours, there) = (
            self.directory.metadata(),
            std::fs::symlink_metadata(directory),
        );
        matches!((ours, there), (Ok(ours), Ok(there)) if number(&ours) == number(&there))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_shared_by_many_or_had_by_one() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let lock = |hold| Held::of(scratch.path(), hold).expect("lock");
        let (first, second) = (lock(Hold::Shared), lock(Hold::Shared));
        assert!(first.is_some() && second.is_some());
        assert!(lock(Hold::Alone).is_none());
        drop((first, second));
        let alone = lock(Hold::Alone).expect("free again");
        assert!(lock(Hold::Shared).is_none());
        assert!(alone.is_at(scratch.path()));
        assert!(!alone.is_at(Path::new("/")));
    }

    #[test]
    fn where_several_machines_may_lock_not_all_see_it() {
        let is_seen = |directory: &Path| {
            let held = Held::of(directory, Hold::Shared).expect("lock");
            held.expect("free").is_seen_by_all()
        };
        let in_memory = tempfile::tempdir_in("/dev/shm").expect("tempdir");
        assert!(is_seen(in_memory.path()));
        assert!(!is_seen(Path::new("/proc"))); // as any that is not known
    }

    #[test]
    fn users_and_groups_have_names_or_numbers() {
        assert_eq!(user_named(0), "root");
        assert_eq!(user_named(4_000_000_000), "4000000000");
        assert_eq!(group_id("root").expect("groups"), Some(0));
        assert_eq!(group_id("77").expect("groups"), Some(77));
        assert_eq!(group_id("no such group").expect("groups"), None);
        assert_eq!(group_named(0), "root");
    }
}
