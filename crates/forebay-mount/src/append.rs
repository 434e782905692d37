//! Appends of several nodes to one file, one after the other.
//!
//! The kernel writes at the end of the file that it saw last, and libcephfs has no write at the end whose place no other
//! node can take. So an append holds a lock of the file on all nodes while it asks for the size and writes.

use parking_lot::Mutex;

use crate::client::File;
use crate::error::Failure;
use crate::locks::{APPEND_BYTE, byte_lock};

/// Files that appends of this node take turns for: many more than append at a time.
const TURNS: usize = 64;
/// The owner of the lock: one append of a node at a time has it.
const OWNER: u64 = u64::MAX >> 1;

/// The turns of this node's appends. Without them each would wait for the metadata server.
pub(crate) struct AppendLocks([Mutex<()>; TURNS]);

impl Default for AppendLocks {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Mutex::default()))
    }
}

impl AppendLocks {
    /// Writes `data` at the end of the file, and returns the count.
    pub(crate) fn append(
        &self,
        file: &File,
        size: impl FnOnce() -> Result<u64, Failure>,
        data: &[u8],
    ) -> Result<usize, Failure> {
        // Inodes are aligned in memory.
        let turn = (file.node >> 6) as usize % TURNS;
        let _turn = self.0[turn].lock();
        file.set_lock(&byte_lock(libc::F_WRLCK, APPEND_BYTE), OWNER, true)?;
        let written = size().and_then(|size| {
            let end = i64::try_from(size).map_err(|_| Failure(libc::EFBIG))?;
            write_all(file, end, data)
        });
        let unlocked = file.set_lock(&byte_lock(libc::F_UNLCK, APPEND_BYTE), OWNER, false);
        // What is written is written, even if the lock could not be returned: then the mount is lost, and its locks too.
        if let (Err(error), Ok(_)) = (unlocked, &written) {
            eprintln!("cannot unlock a file after an append: error {}", error.0);
        }
        written
    }
}

/// Writes until all is written, or nothing more can be: then the count is less.
pub(crate) fn write_all(file: &File, offset: i64, data: &[u8]) -> Result<usize, Failure> {
    let mut written = 0;
    while written < data.len() {
        match file.write(offset + written as i64, &data[written..]) {
            Ok(0) => break,
            Ok(count) => written += count,
            Err(error) if written == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(written)
}
