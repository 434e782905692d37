//! Files past the page cache.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::io::Errno;

/// What is to go past the page cache begins, in the file and in memory, and ends at a multiple of this many
/// bytes: file systems ask for no more.
pub const DIRECT_BYTES: usize = 4096;

/// A file whose whole blocks go past the page cache (`O_DIRECT`), so that the device is busy at once, and what
/// is read comes from it. What is no whole block, and all where the file system refuses, goes through.
pub struct Direct {
    plain: File,
    direct: Option<File>,
}

impl Direct {
    /// The file at `path`, which is open to write as `plain`.
    #[must_use]
    pub fn to_write(plain: File, path: &Path) -> Self {
        Self::of(plain, path, OpenOptions::new().write(true))
    }

    /// The same, open to read.
    #[must_use]
    pub fn to_read(plain: File, path: &Path) -> Self {
        Self::of(plain, path, OpenOptions::new().read(true))
    }

    /// All of it goes through the page cache.
    #[must_use]
    pub fn through(plain: File) -> Self {
        Self {
            plain,
            direct: None,
        }
    }

    /// The file itself.
    #[must_use]
    pub fn plain(&self) -> &File {
        &self.plain
    }

    fn of(plain: File, path: &Path, options: &mut OpenOptions) -> Self {
        let options = options.custom_flags(libc::O_DIRECT | libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let direct = options.open(path).ok(); // then it goes through
        Self { plain, direct }
    }

    /// Through what these bytes go.
    fn past(&self, bytes: &[u8], at: u64) -> Option<&File> {
        let is_whole = bytes.as_ptr().addr().is_multiple_of(DIRECT_BYTES)
            && bytes.len().is_multiple_of(DIRECT_BYTES)
            && at.is_multiple_of(DIRECT_BYTES as u64);
        self.direct.as_ref().filter(|_| is_whole)
    }
}

impl FileExt for Direct {
    fn read_at(&self, bytes: &mut [u8], at: u64) -> io::Result<usize> {
        match self.past(bytes, at).map(|file| file.read_at(bytes, at)) {
            Some(read) if !is_refused(&read) => read,
            _ => self.plain.read_at(bytes, at),
        }
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<usize> {
        match self.past(bytes, at).map(|file| file.write_at(bytes, at)) {
            Some(written) if !is_refused(&written) => written,
            _ => self.plain.write_at(bytes, at),
        }
    }
}

/// Some file systems take the flag and refuse the calls.
fn is_refused(moved: &io::Result<usize>) -> bool {
    let invalid = Errno::INVAL.raw_os_error();
    moved
        .as_ref()
        .is_err_and(|error| error.raw_os_error() == Some(invalid))
}
