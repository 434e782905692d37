//! Appends of several nodes to one file, one after the other.
//!
//! The kernel writes at the end of the file that it saw last, and libcephfs has no write at the end whose place no other
//! node can take. So an append holds a lock of the file on all nodes while it asks for the size and writes. The lock is
//! kept for a moment: a program that appends line after line gets it once for many.

use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_host::{clock, threads};
use parking_lot::Mutex;

use crate::error::Errno;
use crate::open_file::File;
use crate::ranges::{APPEND_BYTE, byte_lock};

/// Files that appends of this node take turns for: many more than append at a time.
const TURNS: usize = 64;
/// The owner of the lock: one append of a node at a time has it.
const OWNER: u64 = u64::MAX >> 1;
/// How long the lock is kept for the next append.
const KEPT: Duration = Duration::from_millis(1);
/// How long it is kept while appends follow each other: other nodes wait for it.
const KEPT_MAX: Duration = Duration::from_millis(10);

/// The turns of this node's appends. Without them each would wait for the metadata server.
#[derive(Clone)]
pub(crate) struct AppendLocks(Arc<Turns>);

struct Turns {
    all: [Mutex<Option<Held>>; TURNS],
    /// Whether the thread runs that gives locks back.
    has_thread: Mutex<bool>,
}

/// The lock of a file that this node has.
struct Held {
    file: Arc<File>,
    since: Instant,
    used: Instant,
}

impl Held {
    fn of(file: &Arc<File>) -> Result<Self, Errno> {
        file.set_lock(&byte_lock(libc::F_WRLCK, APPEND_BYTE), OWNER, true)?;
        let now = clock::now();
        Ok(Self { file: Arc::clone(file), since: now, used: now })
    }

    fn is_of(&self, node: u64) -> bool {
        self.file.node == node && self.since.elapsed() < KEPT_MAX
    }

    fn give_back(self) {
        let unlock = byte_lock(libc::F_UNLCK, APPEND_BYTE);
        // What is written is written: a client that cannot unlock is lost, and its locks too.
        if let Err(error) = self.file.set_lock(&unlock, OWNER, false) {
            eprintln!("cannot unlock a file after an append: error {}", error.0);
        }
    }
}

impl Default for AppendLocks {
    fn default() -> Self {
        let all = std::array::from_fn(|_| Mutex::default());
        Self(Arc::new(Turns { all, has_thread: Mutex::new(false) }))
    }
}

impl AppendLocks {
    /// Writes `data` at the end of the file, and returns the count.
    pub(crate) fn append(
        &self,
        file: &Arc<File>,
        size: impl FnOnce() -> Result<u64, Errno>,
        data: &[u8],
    ) -> Result<usize, Errno> {
        // Inodes are aligned in memory.
        let mut turn = self.0.all[(file.node >> 6) as usize % TURNS].lock();
        if let Some(other) = turn.take_if(|held| !held.is_of(file.node)) {
            other.give_back();
        }
        let mut held = match turn.take() {
            Some(held) => held,
            None => Held::of(file)?,
        };
        let written = size().and_then(|size| {
            let end = i64::try_from(size).map_err(|_| Errno(libc::EFBIG))?;
            write_all(file, end, data)
        });
        held.used = clock::now();
        if self.ensure_release_thread() {
            *turn = Some(held)
        } else {
            held.give_back()
        }
        written
    }

    /// Starts the thread that gives locks back, unless it runs.
    fn ensure_release_thread(&self) -> bool {
        let mut has_thread = self.0.has_thread.lock();
        if !*has_thread {
            let turns = Arc::clone(&self.0);
            *has_thread = threads::spawn(move || turns.give_back_unused()).is_ok();
        }
        *has_thread
    }
}

impl Turns {
    /// Gives back locks that no append used for a while, until none is held.
    fn give_back_unused(&self) {
        loop {
            clock::sleep(KEPT);
            if self.release_idle() {
                continue;
            }
            // An append that comes now waits here, and starts another thread.
            let mut has_thread = self.has_thread.lock();
            if !self.release_idle() {
                *has_thread = false;
                return;
            }
        }
    }

    /// Whether locks are held that are still in use.
    fn release_idle(&self) -> bool {
        let mut found = false;
        for turn in &self.all {
            let Some(mut turn) = turn.try_lock() else {
                found = true; // an append has it
                continue;
            };
            match turn.take_if(|held| held.used.elapsed() >= KEPT) {
                Some(unused) => unused.give_back(),
                None => found |= turn.is_some(),
            }
        }
        found
    }
}

/// Writes until all is written, or nothing more can be: then the count is less.
pub(crate) fn write_all(file: &File, offset: i64, data: &[u8]) -> Result<usize, Errno> {
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
