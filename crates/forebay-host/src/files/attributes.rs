//! Reads and sets owner, mode, times and extended attributes of files.
//! Functions of an open file never look up its path. By path, only `set_mode` and extended attributes follow a link.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;

use super::status::Status;
use crate::{Result, with_context};

/// The name and value of an extended attribute. ACLs are included (`system.posix_acl_access`).
pub type ExtendedAttribute = (CString, Vec<u8>);

/// Sets owner and group of an open file. `None` keeps the current value.
pub fn set_owner_of(
    file: &File,
    path: &Path,
    owner: Option<u32>,
    group: Option<u32>,
) -> Result<()> {
    let set = rustix::fs::fchown(file, owner.map(Uid::from_raw), group.map(Gid::from_raw));
    with_context(set, "set the owner of", path)
}

/// Sets owner and group of a name. Does not follow symbolic links. `None` keeps the current value.
pub fn set_owner_of_name(path: &Path, owner: Option<u32>, group: Option<u32>) -> Result<()> {
    let (owner, group) = (owner.map(Uid::from_raw), group.map(Gid::from_raw));
    let set = rustix::fs::chownat(CWD, path, owner, group, AtFlags::SYMLINK_NOFOLLOW);
    with_context(set, "set the owner of", path)
}

/// Opens a name to set its owner and mode by [`set_owner_of_opened`] and [`set_mode_of_opened`]. Does not follow symbolic
/// links, and needs no permission on the file.
pub fn open_name(path: &Path) -> Result<File> {
    let how = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    with_context(rustix::fs::open(path, how, Mode::empty()), "open", path).map(File::from)
}

/// Sets owner and group of an opened name. `None` keeps the current value.
pub fn set_owner_of_opened(
    opened: &File,
    path: &Path,
    owner: Option<u32>,
    group: Option<u32>,
) -> Result<()> {
    let (owner, group) = (owner.map(Uid::from_raw), group.map(Gid::from_raw));
    let set = rustix::fs::chownat(opened, "", owner, group, AtFlags::EMPTY_PATH);
    with_context(set, "set the owner of", path)
}

/// Sets permission bits of an opened name. The kernel refuses to set the mode of a symbolic link.
pub fn set_mode_of_opened(opened: &File, path: &Path, mode: u32) -> Result<()> {
    let itself = format!("/proc/self/fd/{}", opened.as_raw_fd());
    with_context(rustix::fs::chmod(itself, mode.into()), "set the mode of", path)
}

/// Sets permission bits. Follows symbolic links.
pub fn set_mode(path: &Path, mode: u32) -> Result<()> {
    let mode = Mode::from_raw_mode(mode);
    with_context(rustix::fs::chmod(path, mode), "set the mode of", path)
}

/// Sets permission bits of a name. Does not follow symbolic links: the kernel refuses to set the mode of one.
pub fn set_mode_of_name(path: &Path, mode: u32) -> Result<()> {
    set_mode_of_opened(&open_name(path)?, path, mode)
}

/// Sets the permission bits of an open file.
pub fn set_mode_of(file: &File, path: &Path, mode: u32) -> Result<()> {
    let set = rustix::fs::fchmod(file, Mode::from_raw_mode(mode));
    with_context(set, "set the mode of", path)
}

/// Sets access and modification times of an open file.
pub fn set_times_of(file: &File, path: &Path, status: &Status) -> Result<()> {
    let set = rustix::fs::futimens(file, &timestamps(status));
    with_context(set, "set the times of", path)
}

/// Sets access and modification times of a name. Does not follow symbolic links.
pub fn set_times(path: &Path, status: &Status) -> Result<()> {
    let times = timestamps(status);
    let set = rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW);
    with_context(set, "set the times of", path)
}

fn timestamps(status: &Status) -> Timestamps {
    let time = |(tv_sec, tv_nsec)| Timespec { tv_sec, tv_nsec };
    Timestamps { last_access: time(status.accessed), last_modification: time(status.modified) }
}

/// The extended attributes of an open file; empty if the file system supports none.
pub fn extended_attributes(file: &File, path: &Path) -> Result<Vec<ExtendedAttribute>> {
    // Most files have no attributes. A small buffer then needs only one call.
    let mut names = [0_u8; 1024];
    let mut longer = Vec::new();
    let listed = match rustix::fs::flistxattr(file, &mut names[..]) {
        Ok(length) => &names[..length],
        Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
        Err(Errno::RANGE) => {
            longer.resize(LIST_BYTES_MAX, 0);
            let listed = rustix::fs::flistxattr(file, &mut longer[..]);
            let length = with_context(listed, "list the extended attributes of", path)?;
            &longer[..length]
        }
        Err(error) => return with_context(Err(error), "list the extended attributes of", path),
    };
    let mut found = Vec::new();
    for name in listed.split_inclusive(|byte| *byte == 0) {
        let Ok(name) = CStr::from_bytes_with_nul(name) else {
            continue; // the kernel ends each name with a zero
        };
        let mut value = vec![0; VALUE_BYTES_MAX];
        match rustix::fs::fgetxattr(file, name, &mut value[..]) {
            Ok(length) => {
                value.truncate(length);
                found.push((name.to_owned(), value));
            }
            Err(Errno::NODATA) => {} // removed meanwhile
            Err(error) => return with_context(Err(error), "read the extended attributes of", path),
        }
    }
    Ok(found)
}

/// The kernel's `XATTR_LIST_MAX` and `XATTR_SIZE_MAX`.
const LIST_BYTES_MAX: usize = 65536;
const VALUE_BYTES_MAX: usize = 65536;

/// Sets an extended attribute of an open file.
pub fn set_extended_attribute(file: &File, path: &Path, name: &CStr, value: &[u8]) -> Result<()> {
    let set = rustix::fs::fsetxattr(file, name, value, XattrFlags::empty());
    with_context(set, "set an extended attribute of", path)
}

/// Removes an extended attribute of an open file. A missing attribute is no error.
pub fn remove_extended_attribute(file: &File, path: &Path, name: &CStr) -> Result<()> {
    match rustix::fs::fremovexattr(file, name) {
        Err(Errno::NODATA) => Ok(()),
        removed => with_context(removed, "remove an extended attribute of", path),
    }
}

/// The value of an extended attribute that a path leads to; none if it or its file system has none of this name.
pub fn extended_attribute(path: &Path, name: &str) -> Result<Option<Vec<u8>>> {
    let mut value = vec![0; VALUE_BYTES_MAX];
    match rustix::fs::getxattr(path, name, &mut value[..]) {
        Ok(length) => {
            value.truncate(length);
            Ok(Some(value))
        }
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
        Err(error) => with_context(Err(error), "read an extended attribute of", path),
    }
}

/// Sets an extended attribute of what a path leads to.
pub fn set_extended_attribute_of_path(path: &Path, name: &str, value: &[u8]) -> Result<()> {
    let set = rustix::fs::setxattr(path, name, value, XattrFlags::empty());
    with_context(set, "set an extended attribute of", path)
}
