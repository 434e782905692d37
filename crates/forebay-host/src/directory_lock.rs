//! Locks directories that several processes use.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;

use crate::filesystem::is_single_machine_file;
use crate::{Result, with_context};

/// The mode of a directory lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockMode {
    /// Other processes can hold shared locks at the same time.
    Shared,
    /// No other process can hold a lock.
    Exclusive,
}

/// The lock of a directory. Dropping it or the end of the process releases the lock.
#[derive(Debug)]
pub struct DirectoryLock {
    directory: File,
    is_cluster_wide: bool,
}

impl DirectoryLock {
    /// Locks a directory, if the file system has locks; none if another lock conflicts.
    pub fn take(directory: &Path, mode: LockMode) -> Result<Option<Self>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::open(directory, flags, rustix::fs::Mode::empty());
        let file = File::from(with_context(opened, "open", directory)?);
        let operation = match mode {
            LockMode::Shared => FlockOperation::NonBlockingLockShared,
            LockMode::Exclusive => FlockOperation::NonBlockingLockExclusive,
        };
        let is_locked = match rustix::fs::flock(&file, operation) {
            Err(Errno::WOULDBLOCK) => return Ok(None),
            // NFS locks only files that are open for writing. Directories never are.
            Err(Errno::NOSYS | Errno::NOLCK | Errno::OPNOTSUPP | Errno::BADF) => false,
            locked => with_context(locked, "lock", directory).map(|()| true)?,
        };
        let is_single_machine = is_single_machine_file(&file, directory)?;
        Ok(Some(Self { directory: file, is_cluster_wide: is_locked && is_single_machine }))
    }

    /// Whether all users of the directory see this lock, on any machine.
    pub fn is_cluster_wide(&self) -> bool {
        self.is_cluster_wide
    }

    /// Whether `directory` still names the locked directory, and not a replacement.
    pub fn is_at(&self, directory: &Path) -> bool {
        let number = |found: &std::fs::Metadata| (found.dev(), found.ino());
        let (ours, there) = (self.directory.metadata(), std::fs::symlink_metadata(directory));
        matches!((ours, there), (Ok(ours), Ok(there)) if number(&ours) == number(&there))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_is_locked_by_many_shared_or_by_one() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let lock = |mode| DirectoryLock::take(scratch.path(), mode).expect("lock");
        let (first, second) = (lock(LockMode::Shared), lock(LockMode::Shared));
        assert!(first.is_some() && second.is_some());
        assert!(lock(LockMode::Exclusive).is_none());
        drop((first, second));
        let alone = lock(LockMode::Exclusive).expect("free again");
        assert!(lock(LockMode::Shared).is_none());
        assert!(alone.is_at(scratch.path()));
        assert!(!alone.is_at(Path::new("/")));
    }

    #[test]
    fn lock_is_cluster_wide_only_where_one_machine_mounts() {
        let is_cluster_wide = |directory: &Path| {
            let lock = DirectoryLock::take(directory, LockMode::Shared).expect("lock");
            lock.expect("free").is_cluster_wide()
        };
        let in_memory = tempfile::tempdir_in("/dev/shm").expect("tempdir");
        assert!(is_cluster_wide(in_memory.path()));
        assert!(!is_cluster_wide(Path::new("/proc"))); // an unknown type of file system
    }
}
