//! Opens and reads files. Whole files are read into memory; only records and lists have a limit.
//! `open_source`, `read_plain` and `read_record` never wait at a fifo. Only `read_record` checks the owner.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::errors::is_loop;
use crate::{Result, with_context};

/// Reads a file as text.
///
/// # Errors
/// If it cannot be read or is not UTF-8.
pub fn read_to_string(path: &Path) -> Result<String> {
    with_context(fs::read_to_string(path), "read", path)
}

/// Reads a file as bytes.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    with_context(fs::read(path), "read", path)
}

/// Reads a file as text. Replaces bytes that are not UTF-8.
pub fn read_lossy(path: &Path) -> Result<String> {
    // The files of /proc have no size, and would be read in several small parts.
    let mut bytes = Vec::with_capacity(4096);
    let read = File::open(path).and_then(|mut file| file.read_to_end(&mut bytes));
    with_context(read, "read", path).map(|_| String::from_utf8_lossy(&bytes).into_owned())
}

/// Bytes of a list of files or nodes at most: two million paths of 128 bytes.
const PLAIN_BYTES_MAX: u64 = 256 << 20;

/// The whole text of a regular file of at most 256 MiB; a fifo in its place is an error and is not waited for.
pub fn read_plain(path: &Path) -> Result<String> {
    let refused = |why: &str| with_context(Err(io::Error::other(why.to_owned())), "read", path);
    let file = open_source(path, true)?;
    let found = with_context(file.metadata(), "read", path)?;
    if !found.is_file() {
        return refused("it is not a regular file");
    }
    let mut text = String::new();
    // It may grow meanwhile, and files of /proc have no size.
    with_context(file.take(PLAIN_BYTES_MAX + 1).read_to_string(&mut text), "read", path)?;
    if text.len() as u64 > PLAIN_BYTES_MAX {
        return refused("it has more than 256 MiB, the most that Forebay reads");
    }
    Ok(text)
}

/// Bytes of a record at most.
const RECORD_BYTES_MAX: u64 = 64 << 20;

/// Reads a record of Forebay: a regular file of at most 64 MiB. `owner` limits the owner of the
/// file. Other users of the machine may have created the path, so the function refuses symbolic
/// links and does not block on fifos.
///
/// # Errors
/// If the file is not such a record, cannot be read, or is not UTF-8.
pub fn read_record(path: &Path, owner: Option<u32>) -> Result<String> {
    let refused = |why: String| with_context(Err(io::Error::other(why)), "read", path);
    let file = match open_source(path, false) {
        Err(error) if is_loop(&error.source) => return refused("it is a symbolic link".to_owned()),
        opened => opened?,
    };
    let found = with_context(file.metadata(), "read", path)?;
    if !found.is_file() {
        return refused("it is not a regular file".to_owned());
    }
    if let Some(owner) = owner.filter(|owner| *owner != found.uid()) {
        return refused(format!("it belongs to user {}, not to user {owner}", found.uid()));
    }
    if found.len() > RECORD_BYTES_MAX {
        return refused(format!("it has {} bytes, more than a record of Forebay", found.len()));
    }
    let mut text = String::new();
    with_context(file.take(RECORD_BYTES_MAX).read_to_string(&mut text), "read", path)?;
    Ok(text)
}

/// The target of a symbolic link.
pub fn read_link(path: &Path) -> Result<PathBuf> {
    with_context(fs::read_link(path), "read the link", path)
}

/// Opens a file for reading.
pub fn open_to_read(path: &Path) -> Result<File> {
    with_context(File::open(path), "open", path)
}

/// Opens a directory. Fails at once if something else has the name; follows symbolic links only with `follow_link`.
pub fn open_directory(path: &Path, follow_link: bool) -> Result<File> {
    let link = if follow_link { 0 } else { libc::O_NOFOLLOW };
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_DIRECTORY | link);
    with_context(options.open(path), "open", path)
}

/// Opens a file for reading. The path may have changed since a check: a fifo does not block, and
/// symbolic links are followed only with `follow_link`.
pub fn open_source(path: &Path, follow_link: bool) -> Result<File> {
    let link = if follow_link { 0 } else { libc::O_NOFOLLOW };
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NONBLOCK | link);
    with_context(options.open(path), "open", path)
}

/// The next range of data at or after `from`, by `SEEK_DATA` and `SEEK_HOLE` of `lseek(2)`; none if
/// only a hole follows. If the file system does not support holes, all bytes are data.
pub fn data_from(file: &File, path: &Path, from: u64, to: u64) -> Result<Option<Range<u64>>> {
    if from >= to {
        return Ok(None);
    }
    let begin = match rustix::fs::seek(file, SeekFrom::Data(from)) {
        Ok(begin) => begin,
        Err(Errno::NXIO) => return Ok(None),
        Err(Errno::INVAL) => return Ok(Some(from..to)),
        Err(error) => return with_context(Err(error), "look for holes in", path),
    };
    if begin >= to {
        return Ok(None);
    }
    let end =
        with_context(rustix::fs::seek(file, SeekFrom::Hole(begin)), "look for holes in", path)?;
    Ok(Some(begin..end.min(to)))
}
