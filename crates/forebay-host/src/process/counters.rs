//! Numbers that a process of another user writes and this one reads. They are memory of a fixed size: neither process
//! waits for the other, and whatever is written there is a number.

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::SealFlags;

use crate::{Result, with_context};

/// How many numbers there are.
pub const COUNTERS: usize = 4;
const NUMBER_BYTES: usize = size_of::<u64>();

/// The numbers, for the process that reads.
#[derive(Debug)]
pub struct Counters(File);

/// The numbers, for the process that writes.
#[derive(Debug)]
pub struct CounterWriter(File);

impl Counters {
    /// All numbers are zero.
    pub fn new() -> Result<Self> {
        with_context(make(), "share numbers in", Path::new("memory"))
    }

    /// The descriptor that the other process inherits.
    pub fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// The numbers now.
    pub fn read(&self) -> [u64; COUNTERS] {
        let mut numbers = [0; COUNTERS];
        for (offset, number) in (0_u64..).step_by(NUMBER_BYTES).zip(&mut numbers) {
            let mut bytes = [0; NUMBER_BYTES];
            // Nobody can make it shorter, so it can always be read.
            if self.0.read_exact_at(&mut bytes, offset).is_ok() {
                *number = u64::from_le_bytes(bytes);
            }
        }
        numbers
    }
}

fn make() -> std::io::Result<Counters> {
    let flags = rustix::fs::MemfdFlags::CLOEXEC | rustix::fs::MemfdFlags::ALLOW_SEALING;
    let file = File::from(rustix::fs::memfd_create("forebay", flags)?);
    file.set_len((COUNTERS * NUMBER_BYTES) as u64)?;
    rustix::fs::fcntl_add_seals(&file, SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL)?;
    Ok(Counters(file))
}

impl CounterWriter {
    /// The numbers behind an inherited descriptor; none if there is no such file.
    pub fn inherited(descriptor: RawFd) -> Option<Self> {
        // SAFETY: asks for the flags of a descriptor, which may not exist.
        if descriptor <= 2 || unsafe { libc::fcntl(descriptor, libc::F_GETFD) } < 0 {
            return None;
        }
        // SAFETY: it exists, and the process that started this one left it to this one alone.
        Some(Self(unsafe { File::from_raw_fd(descriptor) }))
    }

    /// Sets one number.
    pub fn set(&self, which: usize, number: u64) {
        let offset = (which.min(COUNTERS - 1) * NUMBER_BYTES) as u64;
        // The numbers are for display: without them the work goes on.
        self.0.write_all_at(&number.to_le_bytes(), offset).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_writer_are_read_and_nobody_can_change_their_size() {
        let counters = Counters::new().expect("made");
        assert_eq!(counters.read(), [0; COUNTERS]);
        let copy = rustix::io::dup(&counters.0).expect("copy");
        let writer = CounterWriter::inherited(std::os::fd::IntoRawFd::into_raw_fd(copy));
        let writer = writer.expect("open");
        writer.set(0, 7);
        writer.set(3, u64::MAX);
        assert_eq!(counters.read(), [7, 0, 0, u64::MAX]);
        writer.0.set_len(0).expect_err("sealed");
        writer.0.write_all_at(&[1; 9], 24).ok();
        assert_eq!(counters.0.metadata().expect("status").len(), 32);
        assert!(CounterWriter::inherited(1).is_none() && CounterWriter::inherited(9999).is_none());
    }
}
