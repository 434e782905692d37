//! Open files and directories of libcephfs.
//! Calls wait for servers without a limit of their own. Permissions were judged when the file was opened.

use std::ffi::{CStr, c_int};
use std::sync::Arc;

use forebay_ceph::PreloadFunctions;

use crate::client::{Client, counted, done};
use crate::error::Errno;
use crate::protocol::DirectoryEntry;

/// An open file of libcephfs. Dropping it closes it, and its locks end.
pub(crate) struct CephFile {
    client: Arc<Client>,
    handle: forebay_ceph::OpenFile,
}

// SAFETY: as for the client.
unsafe impl Send for CephFile {}
// SAFETY: as for the client.
unsafe impl Sync for CephFile {}

impl Drop for CephFile {
    fn drop(&mut self) {
        // SAFETY: the handle is open and used by nobody else.
        unsafe { (self.client.functions.close)(self.client.mount, self.handle) };
    }
}

/// An open directory. Dropping it closes it.
pub(crate) struct Directory {
    client: Arc<Client>,
    handle: forebay_ceph::OpenDirectory,
}

// SAFETY: as for the client; one thread at a time uses it, behind a lock.
unsafe impl Send for Directory {}

impl Drop for Directory {
    fn drop(&mut self) {
        // SAFETY: the handle is open and used by nobody else.
        unsafe { (self.client.functions.close_directory)(self.client.mount, self.handle) };
    }
}

/// A call whose waits all check what they wait for. A thread that waits for a capability may not be woken
/// (`Client::get_caps` of version 16), so its waits return after a while.
pub(crate) struct Checked(Option<PreloadFunctions>);

impl Checked {
    pub(crate) fn begin(preload: Option<PreloadFunctions>) -> Self {
        if let Some(preload) = preload {
            // SAFETY: the function only notes it for this thread.
            unsafe { (preload.look_again)(true) };
        }
        Self(preload)
    }
}

impl Drop for Checked {
    fn drop(&mut self) {
        if let Some(preload) = self.0 {
            // SAFETY: as above.
            unsafe { (preload.look_again)(false) };
        }
    }
}

impl CephFile {
    pub(crate) fn new(client: &Arc<Client>, handle: forebay_ceph::OpenFile) -> Self {
        Self { client: Arc::clone(client), handle }
    }

    /// Reads into `buffer` and returns the count, which is less only at the end of the file.
    pub(crate) fn read(&self, offset: i64, buffer: &mut [u8]) -> Result<usize, Errno> {
        let (at, length) = (buffer.as_mut_ptr().cast(), buffer.len() as u64);
        let client = &self.client;
        let _checked = Checked::begin(client.preload);
        // SAFETY: the file is open, and the function writes at most `length` bytes.
        counted(unsafe { (client.functions.read)(client.mount, self.handle, offset, length, at) })
    }

    /// Whether this node reads the byte without a server. If not, the call reads it from one.
    pub(crate) fn read_is_cached(&self, offset: i64) -> bool {
        let Some(preload) = self.client.preload else { return false };
        // SAFETY: the function only counts.
        let waits = || unsafe { (preload.waits)() };
        let before = waits();
        self.read(offset, &mut [0]).is_ok() && waits() == before
    }

    /// Writes `data` and returns the count.
    pub(crate) fn write(&self, offset: i64, data: &[u8]) -> Result<usize, Errno> {
        let (at, length) = (data.as_ptr().cast(), data.len() as u64);
        let client = &self.client;
        let _checked = Checked::begin(client.preload);
        // SAFETY: the file is open, and the function reads `length` bytes.
        counted(unsafe { (client.functions.write)(client.mount, self.handle, offset, length, at) })
    }

    pub(crate) fn sync(&self, only_data: bool) -> Result<(), Errno> {
        let client = &self.client;
        // SAFETY: the file is open.
        done(unsafe { (client.functions.sync_file)(client.mount, self.handle, only_data.into()) })
    }

    /// The next data or the next hole from `offset` on.
    pub(crate) fn seek(&self, offset: i64, whence: c_int) -> Result<u64, Errno> {
        let client = &self.client;
        // SAFETY: the file is open.
        let found = unsafe { (client.functions.seek)(client.mount, self.handle, offset, whence) };
        let failed = |_| Errno(i32::try_from(found.saturating_neg()).unwrap_or(libc::EIO));
        u64::try_from(found).map_err(failed)
    }

    pub(crate) fn allocate(&self, mode: c_int, offset: i64, length: i64) -> Result<(), Errno> {
        let client = &self.client;
        let _checked = Checked::begin(client.preload);
        // SAFETY: the file is open.
        done(unsafe {
            (client.functions.allocate)(client.mount, self.handle, mode, offset, length)
        })
    }

    /// Sets or removes a lock. With `waits` it returns when it has the lock.
    pub(crate) fn set_lock(
        &self,
        lock: &libc::flock,
        owner: u64,
        waits: bool,
    ) -> Result<(), Errno> {
        let (mut lock, client) = (*lock, &self.client);
        // SAFETY: the file is open, and the structure is ours.
        done(unsafe {
            let lock = &raw mut lock;
            (client.functions.set_lock)(client.mount, self.handle, lock, owner, waits.into())
        })
    }

    /// The first lock that is in the way of `lock`; its type is `F_UNLCK` if there is none.
    pub(crate) fn lock_holder(&self, lock: &libc::flock, owner: u64) -> Result<libc::flock, Errno> {
        let (mut lock, client) = (*lock, &self.client);
        // SAFETY: the file is open, and the structure is ours.
        done(unsafe {
            (client.functions.lock_holder)(client.mount, self.handle, &raw mut lock, owner)
        })?;
        Ok(lock)
    }
}

impl Directory {
    pub(crate) fn new(client: &Arc<Client>, handle: forebay_ceph::OpenDirectory) -> Self {
        Self { client: Arc::clone(client), handle }
    }

    /// The next name; none after the last.
    pub(crate) fn next(&mut self) -> Result<Option<DirectoryEntry>, Errno> {
        // SAFETY: zeros are valid in the structure.
        let mut found: libc::dirent = unsafe { std::mem::zeroed() };
        let client = &self.client;
        // SAFETY: the directory is open, and the structure is ours.
        let result =
            unsafe { (client.functions.next_name)(client.mount, self.handle, &raw mut found) };
        if counted(result)? == 0 {
            return Ok(None);
        }
        // SAFETY: the library ends the name with a zero.
        let name = unsafe { CStr::from_ptr(found.d_name.as_ptr()) }.to_bytes().to_vec();
        let next = found.d_off.cast_unsigned();
        Ok(Some(DirectoryEntry { name, ino: found.d_ino, kind: found.d_type, next }))
    }

    /// Continues at a place that [`Directory::next`] returned, or from the start.
    pub(crate) fn seek(&mut self, place: u64) {
        let client = &self.client;
        // SAFETY: the directory is open.
        unsafe {
            (client.functions.seek_directory)(client.mount, self.handle, place.cast_signed());
        }
    }
}
