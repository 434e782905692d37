//! Reads and writes aligned blocks of files without the page cache, and all other parts through it.
//! Never looks up the path of an open file. A file system that refuses direct I/O is no error.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use rustix::io::Errno;

/// The alignment of direct I/O in bytes, for addresses, lengths and offsets. File systems require
/// at most this alignment.
pub const DIRECT_BYTES: usize = 4096;

/// A file with direct I/O (`O_DIRECT`) for aligned blocks. The page cache serves unaligned parts,
/// and all parts if the file system refuses direct I/O.
pub struct Direct {
    plain: File,
    direct: Option<File>,
}

impl Direct {
    /// Opens a file, which is open for writing, for direct writing as well.
    pub fn to_write(plain: File) -> Self {
        Self::of(plain, OpenOptions::new().write(true))
    }

    /// Opens a file, which is open for reading, for direct reading as well.
    pub fn to_read(plain: File) -> Self {
        Self::of(plain, OpenOptions::new().read(true))
    }

    /// Uses the page cache for all parts.
    pub fn buffered(plain: File) -> Self {
        Self { plain, direct: None }
    }

    /// The file with buffered I/O.
    pub fn plain(&self) -> &File {
        &self.plain
    }

    fn of(plain: File, options: &mut OpenOptions) -> Self {
        // Not by its path, which may name another file now.
        let same = format!("/proc/self/fd/{}", plain.as_raw_fd());
        let direct = options.custom_flags(libc::O_DIRECT).open(same).ok(); // on failure all parts use the page cache
        Self { plain, direct }
    }

    /// The direct file if these bytes are aligned; none otherwise.
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

/// Some file systems accept the flag but refuse the calls.
fn is_refused(moved: &io::Result<usize>) -> bool {
    let invalid = Errno::INVAL.raw_os_error();
    moved.as_ref().is_err_and(|error| error.raw_os_error() == Some(invalid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files;

    #[test]
    fn whole_blocks_and_partial_ends_become_one_file() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let path = scratch.path().join("file");
        let made = files::make_file(&path, 0o600).expect("made");
        let file = Direct::to_write(made);
        let mut memory = vec![7_u8; 4 * DIRECT_BYTES];
        let from = memory.as_ptr().align_offset(DIRECT_BYTES);
        let (whole, odd) = (from..from + 2 * DIRECT_BYTES, from + 1..from + 6);
        assert!(file.past(&memory[odd.clone()], 0).is_none());
        assert!(file.past(&memory[whole.clone()], 1).is_none());
        file.write_all_at(&memory[whole.clone()], 0).expect("whole");
        let end = 2 * DIRECT_BYTES as u64;
        file.write_all_at(&memory[odd], end).expect("odd");
        memory.fill(0);
        let back = Direct::to_read(files::open_to_read(&path).expect("opened"));
        assert_eq!(back.past(&memory[whole.clone()], 0).is_some(), file.direct.is_some());
        back.read_exact_at(&mut memory[whole.clone()], 0).expect("read");
        assert!(memory[whole].iter().all(|byte| *byte == 7));
        let mut rest = [0; 9];
        assert_eq!(back.read_at(&mut rest, end).expect("read"), 5);
        assert_eq!(rest, [7, 7, 7, 7, 7, 0, 0, 0, 0]);
    }
}
