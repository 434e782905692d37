//! Files mapped into memory.

use std::os::fd::BorrowedFd;
use std::ptr::null_mut;

use rustix::io::{self, Errno};
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};

/// A mapping from the start of a file. The checks never touch memory beyond the end of the file.
#[derive(Debug)]
pub(super) struct Mapping {
    address: *mut u8,
    bytes: usize,
    writable: bool,
}

impl Mapping {
    pub(super) fn new(
        file: BorrowedFd<'_>,
        bytes: usize,
        shared: bool,
        writable: bool,
    ) -> io::Result<Self> {
        let access = if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        let flags = if shared { MapFlags::SHARED } else { MapFlags::PRIVATE };
        // SAFETY: the kernel chooses the address, so no memory of this process is replaced.
        let address = unsafe { mmap(null_mut(), bytes, access, flags, file, 0) }?;
        Ok(Self { address: address.cast(), bytes, writable })
    }

    fn check(&self, offset: usize, bytes: usize) -> io::Result<()> {
        let end = offset.checked_add(bytes).ok_or(Errno::OVERFLOW)?;
        if end > self.bytes { Err(Errno::INVAL) } else { Ok(()) }
    }

    pub(super) fn read(&self, offset: usize, bytes: usize) -> io::Result<Vec<u8>> {
        self.check(offset, bytes)?;
        // SAFETY: the range is inside the mapping. Others may change it, so each byte is read once, volatile.
        Ok((offset..offset + bytes)
            .map(|at| unsafe { self.address.add(at).read_volatile() })
            .collect())
    }

    pub(super) fn write(&self, offset: usize, bytes: &[u8]) -> io::Result<()> {
        self.check(offset, bytes.len())?;
        if !self.writable {
            return Err(Errno::ACCESS);
        }
        for (at, byte) in bytes.iter().enumerate() {
            // SAFETY: the range is inside the mapping, which is writable.
            unsafe { self.address.add(offset + at).write_volatile(*byte) };
        }
        Ok(())
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        // SAFETY: the mapping itself.
        unsafe { msync(self.address.cast(), self.bytes, MsyncFlags::SYNC) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: nothing refers to the mapping any more.
        unsafe { munmap(self.address.cast(), self.bytes) }.ok(); // fails only for wrong arguments
    }
}
