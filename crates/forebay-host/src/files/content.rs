//! What is in a file, and what makes it survive a power cut.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

use rustix::fs::{Advice, SeekFrom};
use rustix::io::Errno;

use crate::{Result, on};

/// The next range of data at or behind `from`, as `lseek(2)` with `SEEK_DATA` and `SEEK_HOLE` tells it;
/// none if nothing but a hole follows. Where the file system knows no holes, everything is data.
///
/// # Errors
/// As `lseek(2)`; `path` only names the file in them.
pub fn data_from(file: &File, path: &Path, from: u64, to: u64) -> Result<Option<Range<u64>>> {
    if from >= to {
        return Ok(None);
    }
    let begin = match rustix::fs::seek(file, SeekFrom::Data(from)) {
        Ok(begin) => begin,
        Err(Errno::NXIO) => return Ok(None),
        Err(Errno::INVAL) => return Ok(Some(from..to)),
        Err(error) => return on(Err(error), "look for holes in", path),
    };
    if begin >= to {
        return Ok(None);
    }
    let end = on(
        rustix::fs::seek(file, SeekFrom::Hole(begin)),
        "look for holes in",
        path,
    )?;
    Ok(Some(begin..end.min(to)))
}

/// Writes all that was written to the file system on which the file lies to its disk.
///
/// # Errors
/// As `syncfs(2)`.
pub fn sync_file_system(file: &File, path: &Path) -> Result<()> {
    on(rustix::fs::syncfs(file), "sync the file system of", path)
}

/// Drops what the machine's memory holds of a file, so that it is read from the disk next. A wish: the
/// kernel keeps what was not written yet.
///
/// # Errors
/// As `posix_fadvise(2)`; `path` only names the file in them.
pub fn forget(file: &File, path: &Path) -> Result<()> {
    let dropped = rustix::fs::fadvise(file, 0, None, Advice::DontNeed);
    on(dropped, "drop from memory what is of", path)
}

/// Gives a new name to a file that is there.
///
/// # Errors
/// As `link(2)`.
pub fn make_hard_link(existing: &Path, path: &Path) -> Result<()> {
    on(
        std::fs::hard_link(existing, path),
        "make the hard link",
        path,
    )
}

/// Opens a file to read that may have been replaced by something else since it was looked at: neither a
/// fifo nor, unless it is to be followed, a symbolic link holds us up.
///
/// # Errors
/// As `open(2)`.
pub fn open_source(path: &Path, follow_link: bool) -> Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let link = if follow_link { 0 } else { libc::O_NOFOLLOW };
    let mut options = std::fs::OpenOptions::new();
    options.read(true).custom_flags(libc::O_NONBLOCK | link);
    on(options.open(path), "open", path)
}

/// Opens a file to write that is there; a symbolic link is not followed.
///
/// # Errors
/// As `open(2)`.
pub fn open_to_go_on(path: &Path) -> Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).custom_flags(libc::O_NOFOLLOW);
    on(options.open(path), "open", path)
}

/// Locks a file that is made if it is not there, until the result is dropped or we end; none if somebody
/// has it. Where the file system has no locks, nothing is locked.
///
/// # Errors
/// As `open(2)` and `flock(2)`.
pub fn lock_made(path: &Path) -> Result<Option<File>> {
    match super::make_file(path, 0o600) {
        Err(error) if error.already_exists() => {}
        Err(error) => return Err(error),
        Ok(_) => {}
    }
    super::lock(path)
}

/// Does the path lie on a file system of this machine, where processes can share memory and locks?
#[must_use]
pub fn is_local(path: &Path) -> bool {
    // Numbers of statfs(2): ext2-4, xfs, btrfs, tmpfs, f2fs, zfs, overlayfs, ramfs.
    const LOCAL: [i64; 8] = [
        0xef53,
        0x5846_5342,
        0x9123_683e,
        0x0102_1994,
        0xf2f5_2010,
        0x2fc1_2fc1,
        0x794c_7630,
        0x8584_58f6,
    ];
    #[allow(clippy::unnecessary_cast)] // its type differs between machines
    rustix::fs::statfs(path).is_ok_and(|found| LOCAL.contains(&(found.f_type as i64)))
}

/// Is this the answer of a file system that has no more room, or gives no more to this user?
#[must_use]
pub fn is_full(error: &io::Error) -> bool {
    let full = [Errno::NOSPC, Errno::DQUOT];
    full.iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Is it that a quota is used up?
#[must_use]
pub fn is_over_quota(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::DQUOT.raw_os_error())
}

/// Do symbolic links lead in a circle?
#[must_use]
pub fn is_loop(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
}
