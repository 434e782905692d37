//! Requests about open files. Assumes that the kernel applied the umask.
//! Permissions are judged when a file is opened or created, and never again.

use crate::append::write_all;
use crate::open_file::File;
use crate::protocol::{Answer, Request};
use crate::ranges::{FLOCK_BYTE, byte_lock, whole_lock};
use crate::reply::{Outcome, Result};
use crate::server::Server;

/// `FUSE_WRITE_CACHE`: the kernel writes pages of a mapping, at their own place.
const OF_A_MAPPING: u32 = 1 << 0;
/// `FUSE_RELEASE_FLOCK_UNLOCK`.
const RELEASES_FLOCK: u32 = 1 << 1;
/// Of fsync: the data alone.
const ONLY_DATA: u32 = 1 << 0;
/// The longest answer to a read.
const READ_BYTES_MAX: usize = 16 << 20;

impl Server {
    pub(crate) fn create(&self, request: &mut Request) -> Result {
        let body = &mut request.body;
        let (flags, mode) = (body.u32()?, body.u32()?);
        body.take(8)?; // the umask, which the kernel has applied, and flags of the kernel
        let name = body.name()?;
        let who = self.caller_identity(request);
        let asked = (mode, flags.cast_signed());
        let (opened, node, found) = self.client.create(request.node, name, asked, &who)?;
        // Another node may have created it meanwhile, for another user.
        if found.uid == request.caller.uid {
            self.set_layout_of_file(name, node);
        }
        let file = File::new(&self.inodes, opened, node, asked.1);
        let mut answer = Answer::entry(node, &found);
        answer.add_open_file(self.files.add(file));
        Ok(Outcome::Fields(answer))
    }

    pub(crate) fn open(&self, request: &mut Request) -> Result {
        let flags = request.body.u32()?.cast_signed();
        if flags & libc::O_TRUNC != 0 {
            self.client.complete_writes(request.node);
        }
        let opened = self.client.open(request.node, flags, &self.caller_identity(request))?;
        if flags & libc::O_TRUNC != 0 {
            self.inodes.lost.note_emptied(&self.client, request.node)?;
        }
        let file = File::new(&self.inodes, opened, request.node, flags);
        let mut answer = Answer::default();
        answer.add_open_file(self.files.add(file));
        Ok(Outcome::Fields(answer))
    }

    pub(crate) fn read(&self, request: &mut Request, buffer: &mut Vec<u8>) -> Result {
        let body = &mut request.body;
        let (file, offset, size) = (body.u64()?, body.i64()?, body.u32()? as usize);
        let file = self.files.get(file)?;
        let size = size.min(READ_BYTES_MAX);
        if buffer.len() < size {
            buffer.resize(size, 0);
        }
        let count = file.read(offset, &mut buffer[..size])?;
        if self.client.has_cache() {
            self.read_ahead.note(&file, offset, count);
        }
        Ok(Outcome::Buffer(count))
    }

    pub(crate) fn write(&self, request: &mut Request) -> Result {
        let body = &mut request.body;
        let (file, offset) = (body.u64()?, body.i64()?);
        let (size, write_flags) = (body.u32()?, body.u32()?);
        body.take(8)?; // the owner of locks
        let (flags, _) = (body.u32()?, body.u32()?);
        let data = body.take(size as usize)?;
        let file = self.files.get(file)?;
        let is_append = flags & libc::O_APPEND.cast_unsigned() != 0;
        let written = if is_append && write_flags & OF_A_MAPPING == 0 {
            self.appends.append(&file, || self.client.size(file.node), data)?
        } else {
            write_all(&file, offset, data)?
        };
        // Of the open file, or of this write alone: pwritev2 with RWF_DSYNC or RWF_SYNC.
        if flags & libc::O_DSYNC.cast_unsigned() != 0 {
            file.sync(flags & libc::O_SYNC.cast_unsigned() != libc::O_SYNC.cast_unsigned())?;
        }
        let mut answer = Answer::default();
        answer.u32(u32::try_from(written).unwrap_or_default()).u32(0);
        Ok(Outcome::Fields(answer))
    }

    /// A process closes a descriptor of the file: its fcntl locks end, also those it got through other descriptors.
    pub(crate) fn flush(&self, request: &mut Request) -> Result {
        let body = &mut request.body;
        let number = body.u64()?;
        body.take(8)?;
        let owner = body.u64()?;
        let file = self.files.get(number)?;
        let flushed = file.flush();
        // libcephfs also keeps a list for each open file, and unlocks what is on it when the kernel gives the file back:
        // later than this, when the process may have locked again.
        let is_noted = file.take_locked();
        if self.locks.remove_owner(request.node, owner) || is_noted {
            file.set_lock(&whole_lock(libc::F_UNLCK), owner, false)?;
            self.locks.look_again(request.node);
        }
        flushed.map(|()| Outcome::Empty)
    }

    pub(crate) fn sync_file(&self, request: &mut Request) -> Result {
        let (file, flags) = (request.body.u64()?, request.body.u32()?);
        self.files.get(file)?.sync(flags & ONLY_DATA != 0)?;
        Ok(Outcome::Empty)
    }

    /// The last descriptor of an opened file was closed.
    pub(crate) fn close(&self, request: &mut Request) -> Result {
        let body = &mut request.body;
        let (number, _) = (body.u64()?, body.u32()?);
        let (flags, owner) = (body.u32()?, body.u64()?);
        let file = self.files.remove(number)?;
        if flags & RELEASES_FLOCK != 0 {
            file.set_lock(&byte_lock(libc::F_UNLCK, FLOCK_BYTE), owner, false)?;
            self.locks.look_again(request.node);
        }
        Ok(Outcome::Empty)
    }

    pub(crate) fn allocate(&self, request: &mut Request) -> Result {
        let body = &mut request.body;
        let (file, offset, length) = (body.u64()?, body.i64()?, body.i64()?);
        let mode = body.u32()?.cast_signed();
        self.files.get(file)?.allocate(mode, offset, length)?;
        Ok(Outcome::Empty)
    }

    pub(crate) fn seek(&self, request: &mut Request) -> Result {
        let body = &mut request.body;
        let (file, offset) = (body.u64()?, body.i64()?);
        let whence = body.u32()?.cast_signed();
        let found = self.files.get(file)?.seek(offset, whence)?;
        let mut answer = Answer::default();
        answer.u64(found);
        Ok(Outcome::Fields(answer))
    }
}
