//! An open file of the kernel: its opening in libcephfs, or the lazy one while its inode is lazy.
//! Locks, seek and allocation never use the lazy one. A read of lost data fails, and never returns zeros for them.

use std::ffi::c_int;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::error::Errno;
use crate::inodes::Inodes;
use crate::open_inode::OpenInode;
use crate::opened::CephFile;
use crate::regular_reads::Reads;

/// Reads of one place, each of which another node makes shorter than the file is afterwards.
const SHORT_READS_MAX: u32 = 100;

/// An open file. Dropping it closes it.
pub(crate) struct File {
    opened: CephFile,
    inode: Arc<OpenInode>,
    /// From which the next ones are expected.
    reads: Mutex<Reads>,
    /// Its number among the files of the inode.
    number: u64,
    /// It was opened for writing.
    is_written: bool,
    /// A process got an fcntl lock through it.
    has_locked: AtomicBool,
    /// Appends need the end of the file as it is on all nodes.
    is_append: bool,
    /// The kernel's number of its inode.
    pub(crate) node: u64,
}

impl Drop for File {
    fn drop(&mut self) {
        self.inode.remove(self.number);
    }
}

impl File {
    /// `flags` are those of open(2).
    pub(crate) fn new(inodes: &Arc<Inodes>, opened: CephFile, node: u64, flags: c_int) -> Self {
        let inode = inodes.get_or_open(node);
        let access = flags & libc::O_ACCMODE;
        let number = inode.add(access);
        let (is_written, is_append) = (access != libc::O_RDONLY, flags & libc::O_APPEND != 0);
        let reads = Mutex::default();
        let has_locked = AtomicBool::new(false);
        Self { opened, inode, reads, number, is_written, has_locked, is_append, node }
    }

    /// Reads into `buffer` and returns the count, which is less only at the end of the file.
    pub(crate) fn read(&self, offset: i64, buffer: &mut [u8]) -> Result<usize, Errno> {
        let mode = self.inode.for_io(self.number, &self.opened)?;
        let count = match mode.lazy_file(self.number) {
            Some(lazy) => lazy.read(offset, buffer),
            None => self.read_strictly(offset, buffer),
        }?;
        // Data that were lost read as zeros.
        self.inode.check_data(offset, Some(count))?;
        Ok(count)
    }

    /// libcephfs asks for the size after a read that ended early. If another node has made the file longer meanwhile, it
    /// reads the rest, and returns the rest in the place of the whole (Ceph 16.2.15). A read within the size is whole.
    fn read_strictly(&self, offset: i64, buffer: &mut [u8]) -> Result<usize, Errno> {
        let start = u64::try_from(offset).map_err(|_| Errno(libc::EINVAL))?;
        let mut length = buffer.len();
        for _ in 1..SHORT_READS_MAX {
            let count = self.opened.read(offset, &mut buffer[..length])?;
            if count == 0 || count == length {
                return Ok(count);
            }
            let left = self.inode.size()?.saturating_sub(start);
            if count as u64 >= left {
                return Ok(count);
            }
            length = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        }
        Err(Errno(libc::EIO))
    }

    /// After a read: the offsets and lengths to read ahead.
    pub(crate) fn next_reads(&self, read: (i64, i64)) -> Vec<(i64, i64)> {
        let has_own = !self.inode.is_lazy();
        let mut asked = self.inode.asked_pieces.lock();
        let mut next = self.reads.lock().note(read, has_own, asked.forgotten());
        next.retain(|place| !asked.check_and_add(*place));
        next
    }

    /// Nobody reads these places ahead.
    pub(crate) fn give_up_next_reads(&self, places: &[(i64, i64)]) {
        self.inode.asked_pieces.lock().give_up(places);
        if let Some(first) = places.first() {
            self.reads.lock().give_up(*first);
        }
    }

    /// Reads into the cache of libcephfs. `buffer` is of no use afterwards. What then forgets the cache waits until it is
    /// there. Nobody gets an error here: the program reads the same place itself.
    pub(crate) fn read_ahead(&self, offset: i64, buffer: &mut [u8]) {
        let Some(mode) = self.inode.mode_without_waiting(self.number) else { return };
        if let Some(lazy) = mode.lazy_file(self.number) {
            let _ = lazy.read(offset, buffer);
            return;
        }
        let Some(last) = self.reads.lock().last_unless_paused() else { return };
        let is_cached = self.opened.read_is_cached(last);
        self.reads.lock().note_cached(is_cached);
        if is_cached {
            let _ = self.opened.read(offset, buffer);
        }
    }

    /// Writes `data` and returns the count.
    pub(crate) fn write(&self, offset: i64, data: &[u8]) -> Result<usize, Errno> {
        self.inode.check_data(offset, Some(data.len()))?;
        let mode = self.inode.for_io(self.number, &self.opened)?;
        match mode.lazy_file(self.number) {
            Some(lazy) => lazy.write(offset, data),
            None => self.opened.write(offset, data),
        }
    }

    /// Waits until what was written is on the servers.
    pub(crate) fn sync(&self, only_data: bool) -> Result<(), Errno> {
        let mode = self.inode.for_io(self.number, &self.opened)?;
        let synced = match mode.lazy_file(self.number) {
            Some(lazy) => lazy.write_back(only_data),
            None => self.opened.sync(only_data),
        };
        synced.and(self.inode.take_error(self.number)).and_then(|()| self.check_written())
    }

    /// A process closes a descriptor: what is buffered lazily is written back, so that close(2) returns the error.
    pub(crate) fn flush(&self) -> Result<(), Errno> {
        let written = self.inode.write_back_own(self.number);
        written.and(self.inode.take_error(self.number)).and_then(|()| self.check_written())
    }

    /// What was written may have been lost since.
    fn check_written(&self) -> Result<(), Errno> {
        if self.is_written { self.inode.check_data(0, None) } else { Ok(()) }
    }

    pub(crate) fn seek(&self, offset: i64, whence: c_int) -> Result<u64, Errno> {
        self.opened.seek(offset, whence)
    }

    pub(crate) fn allocate(&self, mode: c_int, offset: i64, length: i64) -> Result<(), Errno> {
        self.inode.flush_and_invalidate()?;
        self.opened.allocate(mode, offset, length)
    }

    /// Sets or removes a lock. With `waits` it returns when it has the lock. What one owner wrote is what the next owner
    /// reads, also while the file is lazy.
    pub(crate) fn set_lock(
        &self,
        lock: &libc::flock,
        owner: u64,
        waits: bool,
    ) -> Result<(), Errno> {
        let is_unlock = lock.l_type == libc::F_UNLCK as i16;
        if is_unlock {
            self.inode.write_back();
        }
        self.opened.set_lock(lock, owner, waits)?;
        if is_unlock { Ok(()) } else { self.inode.flush_and_invalidate() }
    }

    /// The first lock that is in the way of `lock`; its type is `F_UNLCK` if there is none.
    pub(crate) fn lock_holder(&self, lock: &libc::flock, owner: u64) -> Result<libc::flock, Errno> {
        self.opened.lock_holder(lock, owner)
    }

    pub(crate) fn note_lock(&self) {
        self.has_locked.store(true, Ordering::Release);
    }

    /// Whether a process got an fcntl lock through this file, since the last call.
    pub(crate) fn take_locked(&self) -> bool {
        self.has_locked.swap(false, Ordering::AcqRel)
    }

    /// Asks for lazy I/O. `path` is that of the file as the process sees it. True: it is lazy now.
    pub(crate) fn begin_lazy(&self, path: PathBuf) -> Result<bool, Errno> {
        // Without a writer all nodes cache anyway. CephFS takes the right to cache from a lazy reader without a word, also
        // when the file is strict again.
        if self.is_append || !self.is_written {
            return Err(Errno(libc::EOPNOTSUPP));
        }
        self.inode.ask(self.number, path)
    }

    /// Writes back what this node has buffered, and forgets what it has cached. True: the file is lazy now.
    pub(crate) fn sync_lazy(&self) -> Result<bool, Errno> {
        self.inode.sync(self.number)
    }

    /// Writes back, and makes the file strict.
    pub(crate) fn end_lazy(&self) -> Result<(), Errno> {
        self.inode.stop_asking(self.number)
    }
}
