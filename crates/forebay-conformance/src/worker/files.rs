//! Operations on open files, and on whole files by path.
//! Transfers at an offset repeat their call until all bytes are done, so a short transfer is not seen.

use std::os::fd::BorrowedFd;

use rustix::fs::{self, FallocateFlags, OFlags, SeekFrom};
use rustix::io::{self, Errno};

use super::names;
use super::state::{Result, Worker, done, unknown};
use crate::bytes::{Bytes, Data, first_difference};
use crate::operation::{Answer, Flag, Operation, Whence};

/// Most bytes that a worker reads for one operation.
const READ_BYTES_MAX: usize = 16 << 20;
/// The alignment of O_DIRECT that suits each device.
const ALIGNMENT_BYTES: usize = 4096;

impl Worker {
    pub(super) fn execute_on_file(&mut self, operation: &Operation) -> Result<Answer> {
        match operation {
            Operation::Open { path, flags, mode } => {
                let file = open(&self.path(path), flags, *mode)?;
                let handle = self.new_handle();
                self.files.insert(handle, file);
                Ok(Answer::Number(handle))
            }
            Operation::Close { handle } => {
                self.files.remove(handle).map(|_| Answer::Done).ok_or_else(|| unknown(*handle))
            }
            Operation::Write { handle, data } => {
                let written = io::write(self.file(*handle)?, &data.contents())?;
                Ok(Answer::Number(written as u64))
            }
            Operation::WriteAt { handle, offset, data } => {
                let written = write_at(self.file(*handle)?, *offset, &data.contents())?;
                Ok(Answer::Number(written as u64))
            }
            Operation::ReadAt { handle, offset, bytes } => {
                let read = read_at(self.file(*handle)?, *offset, *bytes)?;
                Ok(Answer::Bytes(Bytes(read)))
            }
            Operation::Verify { handle, offset, data } => {
                let expected = data.contents();
                let read = read_at(self.file(*handle)?, *offset, expected.len())?;
                Ok(difference(&read, &expected))
            }
            Operation::DirectRoundTrip { handle, data } => direct(self.file(*handle)?, data),
            Operation::Seek { handle, offset, whence } => {
                let position = io_position(*offset, *whence);
                Ok(Answer::Number(fs::seek(self.file(*handle)?, position)?))
            }
            Operation::Sync { handle } => done(fs::fsync(self.file(*handle)?)),
            Operation::StatHandle { handle } => {
                Ok(names::attributes(&fs::fstat(self.file(*handle)?)?))
            }
            Operation::TruncateHandle { handle, bytes } => {
                done(fs::ftruncate(self.file(*handle)?, *bytes))
            }
            Operation::Allocate { handle, offset, bytes, keep_size } => {
                let flags =
                    if *keep_size { FallocateFlags::KEEP_SIZE } else { FallocateFlags::empty() };
                done(fs::fallocate(self.file(*handle)?, flags, *offset, *bytes))
            }
            Operation::PunchHole { handle, offset, bytes } => {
                let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                done(fs::fallocate(self.file(*handle)?, flags, *offset, *bytes))
            }
            Operation::CopyRange { from, from_offset, to, to_offset, bytes } => {
                let (mut read, mut written) = (*from_offset, *to_offset);
                let (from, to) = (self.file(*from)?, self.file(*to)?);
                let count =
                    fs::copy_file_range(from, Some(&mut read), to, Some(&mut written), *bytes)?;
                Ok(Answer::Number(count as u64))
            }
            Operation::WriteFile { path, data } => {
                write_file(&self.path(path), &data.contents())?;
                Ok(Answer::Done)
            }
            Operation::ReadFile { path } => Ok(Answer::Bytes(Bytes(read_file(&self.path(path))?))),
            Operation::VerifyFile { path, data } => {
                Ok(difference(&read_file(&self.path(path))?, &data.contents()))
            }
            _ => self.execute_lock_or_map(operation),
        }
    }
}

fn difference(read: &[u8], expected: &[u8]) -> Answer {
    let differs = first_difference(read, expected);
    differs.map_or(Answer::Done, |offset| Answer::Number(offset as u64))
}

fn io_position(offset: u64, whence: Whence) -> SeekFrom {
    match whence {
        Whence::Start => SeekFrom::Start(offset),
        Whence::Current => SeekFrom::Current(offset.cast_signed()),
        Whence::End => SeekFrom::End(offset.cast_signed()),
        Whence::Data => SeekFrom::Data(offset),
        Whence::Hole => SeekFrom::Hole(offset),
    }
}

/// Opens a file. It is closed in programs that the worker starts, of which there are none.
pub(super) fn open(path: &[u8], flags: &[Flag], mode: u32) -> io::Result<std::os::fd::OwnedFd> {
    let flags = flags.iter().fold(OFlags::CLOEXEC, |all, flag| all | bits(*flag));
    fs::open(path, flags, mode.into())
}

fn bits(flag: Flag) -> OFlags {
    match flag {
        Flag::Read => OFlags::RDONLY,
        Flag::Write => OFlags::WRONLY,
        Flag::ReadWrite => OFlags::RDWR,
        Flag::Create => OFlags::CREATE,
        Flag::Exclusive => OFlags::EXCL,
        Flag::Truncate => OFlags::TRUNC,
        Flag::Append => OFlags::APPEND,
        Flag::Direct => OFlags::DIRECT,
        Flag::Directory => OFlags::DIRECTORY,
        Flag::NoFollow => OFlags::NOFOLLOW,
        Flag::Unnamed => OFlags::TMPFILE,
    }
}

/// Writes all bytes, unless a call writes none. Makes one call if there are none.
pub(super) fn write_at(file: BorrowedFd<'_>, offset: u64, bytes: &[u8]) -> io::Result<usize> {
    let mut written = 0;
    loop {
        let count = io::pwrite(file, &bytes[written..], offset + written as u64)?;
        written += count;
        if count == 0 || written >= bytes.len() {
            return Ok(written);
        }
    }
}

/// Reads until `bytes` are read or the file ends.
pub(super) fn read_at(file: BorrowedFd<'_>, offset: u64, bytes: usize) -> io::Result<Vec<u8>> {
    let mut read = vec![0; bytes.min(READ_BYTES_MAX)];
    let mut filled = 0;
    while filled < read.len() {
        match io::pread(file, &mut read[filled..], offset + filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    read.truncate(filled);
    Ok(read)
}

pub(super) fn write_file(path: &[u8], bytes: &[u8]) -> io::Result<()> {
    let file = open(path, &[Flag::Write, Flag::Create, Flag::Truncate], 0o644)?;
    let written = write_at(std::os::fd::AsFd::as_fd(&file), 0, bytes)?;
    if written < bytes.len() { Err(Errno::NOSPC) } else { Ok(()) }
}

/// The size may be stale where a file system caches it, so the end is where a read gives nothing.
pub(super) fn read_file(path: &[u8]) -> io::Result<Vec<u8>> {
    let file = open(path, &[Flag::Read], 0)?;
    let (mut read, mut part) = (Vec::new(), vec![0; 256 << 10]);
    while read.len() < READ_BYTES_MAX {
        match io::read(&file, &mut part[..])? {
            0 => break,
            count => read.extend_from_slice(&part[..count]),
        }
    }
    Ok(read)
}

/// Writes and reads through aligned memory.
fn direct(file: BorrowedFd<'_>, data: &Data) -> Result<Answer> {
    let expected = data.contents();
    let mut memory = vec![0; expected.len() + ALIGNMENT_BYTES];
    let first = memory.as_ptr().align_offset(ALIGNMENT_BYTES);
    let aligned = &mut memory[first..first + expected.len()];
    aligned.copy_from_slice(&expected);
    io::pwrite(file, aligned, 0)?;
    aligned.fill(0);
    let read = io::pread(file, &mut aligned[..], 0)?;
    Ok(difference(&aligned[..read], &expected))
}
