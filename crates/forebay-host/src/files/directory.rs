//! An open directory. Avoids a path lookup for each name in it.
//! Assumes names without a slash. Never follows a link that is in it.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Gid, Mode, OFlags, ResolveFlags, Stat, Uid};
use rustix::io::Errno;

use super::mount_table::refuse_mounts_below;
use super::status::{BLOCK_BYTES, Identity, Kind, Status, identity};
use crate::{Result, with_context};

/// An open directory.
#[derive(Debug)]
pub struct Directory {
    pub(super) opened: OwnedFd,
    path: PathBuf,
}

impl Directory {
    /// Opens a directory. Follows symbolic links.
    pub fn open(path: &Path) -> Result<Self> {
        let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = with_context(rustix::fs::open(path, how, Mode::empty()), "list", path)?;
        let path = path.to_owned();
        Ok(Self { opened, path })
    }

    /// Opens a directory only to look up names in it, for which it need not be readable. Follows symbolic links.
    pub fn open_path(path: &Path) -> Result<Self> {
        let how = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = with_context(rustix::fs::open(path, how, Mode::empty()), "open", path)?;
        Ok(Self { opened, path: path.to_owned() })
    }

    /// Opens it, unless it is a symbolic link.
    pub(super) fn open_itself(path: &Path) -> Result<Self> {
        let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = with_context(rustix::fs::open(path, how, Mode::empty()), "remove", path)?;
        Ok(Self { opened, path: path.to_owned() })
    }

    /// Opens a directory in this one. A symbolic link is an error.
    pub fn open_in(&self, name: &OsStr) -> Result<Self> {
        let path = self.path.join(name);
        let opened = with_context(self.openat(name), "open", &path)?;
        Ok(Self { opened, path })
    }

    fn openat(&self, name: &OsStr) -> rustix::io::Result<OwnedFd> {
        let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&self.opened, name, how, Mode::empty())
    }

    /// Makes a directory in this one. An existing name is an error.
    pub fn make_in(&self, name: &OsStr, mode: u32) -> Result<()> {
        let made = rustix::fs::mkdirat(&self.opened, name, Mode::from_raw_mode(mode));
        with_context(made, "make the directory", &self.path.join(name))
    }

    /// Removes an empty directory in this one.
    pub fn remove_empty_in(&self, name: &OsStr) -> Result<()> {
        let removed = rustix::fs::unlinkat(&self.opened, name, AtFlags::REMOVEDIR);
        with_context(removed, "remove", &self.path.join(name))
    }

    /// Gives the directory to a user and a group.
    pub fn give_to(&self, owner: u32, group: u32) -> Result<()> {
        let (owner, group) = (Uid::from_raw(owner), Gid::from_raw(group));
        let given = rustix::fs::fchown(&self.opened, Some(owner), Some(group));
        with_context(given, "give to a user", &self.path)
    }

    /// Sets its permission bits.
    pub fn set_mode(&self, mode: u32) -> Result<()> {
        let set = rustix::fs::fchmod(&self.opened, Mode::from_raw_mode(mode));
        with_context(set, "set the mode of", &self.path)
    }

    /// Writes the names in the directory to its disk.
    pub fn sync(&self) -> Result<()> {
        with_context(rustix::fs::fsync(&self.opened), "sync", &self.path)
    }

    /// The status of the directory.
    pub fn status(&self) -> Result<Status> {
        let found = with_context(rustix::fs::fstat(&self.opened), "look at", &self.path)?;
        Ok(Status::from(&found))
    }

    /// What tells it from all other directories.
    pub fn identity(&self) -> Result<Identity> {
        with_context(identity(&self.opened, "", AtFlags::EMPTY_PATH), "look at", &self.path)
    }

    /// What tells a name in it from all other files. Asks no server, and does not follow symbolic links.
    pub fn identity_of_name(&self, name: &OsStr) -> Result<Identity> {
        match identity(&self.opened, name, AtFlags::empty()) {
            Ok(found) => Ok(found),
            Err(error) => with_context(Err(error), "look at", &self.path.join(name)),
        }
    }

    /// The path by which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Names in it, sorted.
    pub fn names(&self) -> Result<Vec<OsString>> {
        let mut names: Vec<_> = self.entries()?.into_iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Names in it and what they stand for. The things themselves are looked at only where the file system does not say
    /// it with the names.
    pub fn kinds(&self) -> Result<Vec<(OsString, Kind)>> {
        let entries = self.entries()?.into_iter();
        let kinds = entries.map(|(name, kind)| match kind {
            FileType::Unknown => self.status_of_name(&name).map(|found| (name, found.kind)),
            kind => Ok((name, Kind::from(kind))),
        });
        kinds.collect()
    }

    /// The standard library panics where such a directory cannot be closed.
    fn entries(&self) -> Result<Vec<(OsString, FileType)>> {
        let mut found = Vec::new();
        for entry in with_context(Dir::read_from(&self.opened), "list", &self.path)? {
            let entry = with_context(entry, "list", &self.path)?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                found.push((OsString::from_vec(name.to_owned()), entry.file_type()));
            }
        }
        Ok(found)
    }

    /// Removes all that is in it. Links are removed, not followed.
    pub(super) fn clear(&self) -> Result<()> {
        self.clear_all(false)
    }

    /// Removes all that is in it, as root, also what users closed to all others. Root takes each directory from its user
    /// before it looks into it, so no user changes any more what root walks through. Links are not followed. Root needs
    /// the capabilities `CAP_CHOWN` and `CAP_DAC_READ_SEARCH`, and Linux 5.6.
    pub fn clear_as_root(&self) -> Result<()> {
        with_context(take(&self.opened), "remove", &self.path)?;
        self.clear_all(true)
    }

    /// A tree may be deeper than the stack and the table of open files allow: what is below [`LEVELS_MAX`] is moved up
    /// first. Nothing is removed if something is mounted in the tree; what is mounted later stays, and is an error.
    fn clear_all(&self, takes: bool) -> Result<()> {
        refuse_mounts_below(&self.path)?;
        let removal = Removal { top: self, moved: Cell::new(0), takes };
        loop {
            let moved = removal.moved.get();
            self.clear_level(&removal, 0)?;
            if removal.moved.get() == moved {
                return Ok(());
            }
        }
    }

    fn clear_level(&self, removal: &Removal, level: usize) -> Result<()> {
        for (name, kind) in self.entries()? {
            let removed = match kind {
                FileType::Directory => Err(Errno::ISDIR),
                _ => rustix::fs::unlinkat(&self.opened, &name, AtFlags::empty()),
            };
            // Of a directory, Linux says ISDIR, POSIX PERM.
            match removed {
                Err(Errno::ISDIR) => self.remove_directory(&name, removal, level)?,
                Err(Errno::PERM) if self.is_directory(&name) => {
                    self.remove_directory(&name, removal, level)?;
                }
                removed => gone(removed, &self.path.join(&name))?,
            }
        }
        Ok(())
    }

    fn remove_directory(&self, name: &OsStr, removal: &Removal, level: usize) -> Result<()> {
        if level == LEVELS_MAX {
            return self.move_up(name, removal);
        }
        let path = self.path.join(name);
        let opened = match self.open_to_remove(name, removal) {
            Err(Errno::NOENT) => return Ok(()),
            opened => with_context(opened, "remove", &path)?,
        };
        match (Self { opened, path: path.clone() }).clear_level(removal, level + 1) {
            Err(error) if error.is_not_found() => return Ok(()),
            cleared => cleared?,
        }
        gone(rustix::fs::unlinkat(&self.opened, name, AtFlags::REMOVEDIR), &path)
    }

    /// Moves a directory to the top of the tree that is removed, under a name that is free there. An empty directory of
    /// that name may be replaced, since it is removed anyway.
    fn move_up(&self, name: &OsStr, removal: &Removal) -> Result<()> {
        if let Ok(opened) = self.open_to_remove(name, removal) {
            // To move a directory, its owner must be allowed to write it. The move fails if this does.
            rustix::fs::fchmod(&opened, Mode::from_raw_mode(0o700)).ok();
        }
        loop {
            let number = removal.moved.get();
            removal.moved.set(number + 1);
            let target = format!(".forebay-deep-{number}");
            match rustix::fs::renameat(&self.opened, name, &removal.top.opened, &target) {
                Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
                moved => return gone(moved, &self.path.join(name)),
            }
        }
    }

    fn open_to_remove(&self, name: &OsStr, removal: &Removal) -> rustix::io::Result<OwnedFd> {
        let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let inside = ResolveFlags::BENEATH | ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
        // A user may have mounted FUSE here: nothing of it is asked.
        let opened = match rustix::fs::openat2(&self.opened, name, how, Mode::empty(), inside) {
            // Before Linux 5.6, and where a container does not know the call.
            Err(Errno::NOSYS | Errno::PERM) if !removal.takes => self.openat(name)?,
            opened => opened?,
        };
        if removal.takes {
            take(&opened)?;
        }
        Ok(opened)
    }

    fn is_directory(&self, name: &OsStr) -> bool {
        self.status_of_name(name).is_ok_and(|found| found.kind == Kind::Directory)
    }

    /// The status of a name in the directory. Does not follow symbolic links.
    pub fn status_of_name(&self, name: &OsStr) -> Result<Status> {
        match rustix::fs::statat(&self.opened, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Status::from(&found)),
            Err(error) => with_context(Err(error), "look at", &self.path.join(name)),
        }
    }
}

/// Levels of a tree that a removal has open at a time.
const LEVELS_MAX: usize = 100;

/// The removal of a tree.
struct Removal<'a> {
    top: &'a Directory,
    /// Directories moved to the top so far.
    moved: Cell<u64>,
    /// Whether directories are taken from their users.
    takes: bool,
}

/// Gives a directory to root, who alone may use it then.
fn take(opened: &OwnedFd) -> rustix::io::Result<()> {
    rustix::fs::fchown(opened, Some(Uid::ROOT), Some(Gid::ROOT))?;
    rustix::fs::fchmod(opened, Mode::RWXU)
}

/// What others have removed meanwhile is gone as well.
fn gone(removed: rustix::io::Result<()>, path: &Path) -> Result<()> {
    match removed {
        Err(Errno::NOENT) => Ok(()),
        removed => with_context(removed, "remove", path),
    }
}

impl From<FileType> for Kind {
    fn from(found: FileType) -> Self {
        match found {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Link,
            _ => Self::Other,
        }
    }
}

impl From<&Stat> for Status {
    // The widths of these fields depend on the architecture. The kernel's values are not negative.
    #[allow(clippy::unnecessary_cast, clippy::cast_sign_loss, clippy::cast_possible_wrap)]
    fn from(found: &Stat) -> Self {
        Self {
            kind: Kind::from(FileType::from_raw_mode(found.st_mode)),
            size_bytes: found.st_size as u64,
            mode: found.st_mode & 0o7777,
            owner: found.st_uid,
            group: found.st_gid,
            device: found.st_dev,
            inode: found.st_ino,
            links: found.st_nlink as u64,
            allocated_bytes: found.st_blocks as u64 * BLOCK_BYTES,
            accessed: (found.st_atime as i64, found.st_atime_nsec as i64),
            modified: (found.st_mtime as i64, found.st_mtime_nsec as i64),
            changed: (found.st_ctime as i64, found.st_ctime_nsec as i64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files;

    #[test]
    fn directories_are_made_and_removed_by_name_and_links_are_not_followed() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let directory = Directory::open(scratch.path()).expect("opened");
        let (name, link) = (OsStr::new("a"), OsStr::new("link"));
        directory.make_in(name, 0o700).expect("made");
        assert!(directory.make_in(name, 0o700).expect_err("taken").already_exists());
        let made = directory.open_in(name).expect("opened");
        assert_eq!(made.status().expect("status").mode, 0o700);
        files::make_link(Path::new("a"), &scratch.path().join(link)).expect("linked");
        directory.open_in(link).expect_err("a link");
        directory.remove_empty_in(link).expect_err("a link");
        files::make_directory(&scratch.path().join("a/b"), 0o700).expect("made");
        directory.remove_empty_in(name).expect_err("not empty");
        made.remove_empty_in(OsStr::new("b")).expect("removed");
        directory.remove_empty_in(name).expect("removed");
    }

    #[test]
    fn tree_deeper_than_any_stack_is_removed() {
        const LEVELS: usize = 30_000;
        let scratch = tempfile::tempdir_in("/dev/shm").expect("tempdir");
        let tree = scratch.path().join("tree");
        files::make_directories(&tree.join(".forebay-deep-0"), 0o700).expect("made");
        let mut directory = Directory::open(&tree).expect("opened");
        let name = OsStr::new("d");
        for _ in 0..LEVELS {
            directory.make_in(name, 0o700).expect("made");
            directory =
                Directory { path: tree.clone(), ..directory.open_in(name).expect("opened") };
        }
        drop(directory);
        files::remove_tree(&tree).expect("removed");
        assert!(files::status(&tree).expect_err("gone").is_not_found());
    }

    #[test]
    fn root_removes_closed_directories_of_users_and_nothing_that_links_and_mounts_lead_to() {
        if !crate::users::is_root() {
            return; // only root takes directories
        }
        let scratch = tempfile::tempdir_in("/dev/shm").expect("tempdir");
        let (tree, outside) = (scratch.path().join("tree"), scratch.path().join("outside"));
        let deep = (0..2 * LEVELS_MAX).fold(tree.join("closed"), |path, _| path.join("d"));
        files::make_directories(&deep, 0o700).expect("made");
        files::make_directory(&outside, 0o700).expect("made");
        for path in [outside.join("file"), deep.join("file"), tree.join("file")] {
            files::write_atomically(&path, &path.with_extension("fresh"), b"x").expect("written");
        }
        files::make_link(&outside, &tree.join("closed/link")).expect("linked");
        files::make_hard_link(&outside.join("file"), &deep.join("hard")).expect("linked");
        for path in deep.ancestors().take_while(|path| *path != tree) {
            files::set_owner_of_name(path, Some(1), Some(1)).expect("given");
            files::set_mode(path, 0o1000).expect("closed");
        }
        let directory = Directory::open(&tree).expect("opened");
        directory.clear_as_root().expect("removed");
        assert!(directory.names().expect("listed").is_empty());
        assert_eq!(files::read_to_string(&outside.join("file")).expect("there"), "x");
        let status = directory.status().expect("status");
        assert_eq!((status.owner, status.mode), (0, 0o700));
    }

    #[test]
    fn mount_in_the_tree_is_an_error_and_not_entered() {
        let root = Directory::open(Path::new("/")).expect("opened");
        for takes in [false, true] {
            let removal = Removal { top: &root, moved: Cell::new(0), takes };
            let opened = root.open_to_remove(OsStr::new("proc"), &removal);
            assert_eq!(opened.expect_err("a mount"), Errno::XDEV);
        }
        let refused = refuse_mounts_below(Path::new("/")).expect_err("mounts").to_string();
        assert!(refused.starts_with("cannot remove /: something is mounted at /"), "{refused}");
        refuse_mounts_below(Path::new("/proc/self/fd")).expect("no mounts");
    }

    #[test]
    fn open_directory_reports_the_same_as_paths() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let at = |name: &str| scratch.path().join(name);
        files::write_atomically(&at("b"), &at("fresh"), b"seven by").expect("written");
        files::set_mode(&at("b"), 0o4750).expect("set");
        files::make_link(Path::new("nowhere"), &at("c")).expect("linked");
        files::make_directory(&at("a"), 0o700).expect("made");
        let directory = Directory::open(scratch.path()).expect("opened");
        assert_eq!(directory.names().expect("listed"), ["a", "b", "c"]);
        for name in ["a", "b", "c"] {
            let told = directory.status_of_name(OsStr::new(name)).expect("there");
            assert_eq!(told, files::status_of_name(&at(name)).expect("there"));
        }
        let error = directory.status_of_name(OsStr::new("d")).expect_err("gone");
        assert!(error.is_not_found() && error.path == at("d"));
        assert!(Directory::open(&at("b")).is_err());
    }
}
