//! A directory that is open: what is in it is looked at without walking its path for each name.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};

use super::status::{BLOCK_BYTES, Kind, Status};
use crate::{Result, on};

/// A directory that is open.
#[derive(Debug)]
pub struct Directory {
    opened: OwnedFd,
    path: PathBuf,
}

impl Directory {
    /// Opens it; a symbolic link is followed.
    pub fn open(path: &Path) -> Result<Self> {
        let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = on(rustix::fs::open(path, how, Mode::empty()), "list", path)?;
        let path = path.to_owned();
        Ok(Self { opened, path })
    }

    /// Names in it, sorted.
    pub fn names(&self) -> Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in on(Dir::read_from(&self.opened), "list", &self.path)? {
            let entry = on(entry, "list", &self.path)?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name.to_owned()));
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Status of a name in it; a symbolic link is not followed.
    pub fn status_of_name(&self, name: &OsStr) -> Result<Status> {
        match rustix::fs::statat(&self.opened, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Status::from(&found)),
            Err(error) => on(Err(error), "look at", &self.path.join(name)),
        }
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
    // The widths of these numbers differ between machines; the kernel's own are never negative.
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
    fn a_directory_that_is_open_tells_the_same_as_paths_do() {
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
