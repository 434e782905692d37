//! What this node has open of one inode, and whether its I/O is lazy.
//!
//! An inode is lazy on a node while all its open files there have asked for it and no node needs it strict. Then each
//! open file has a second opening ([`LazyFile`]). Nodes agree by two locks of bytes that no process can lock:
//!
//! * a lazy node has locked [`LAZY_BYTE`], then announced it, then found [`STRICT_BYTE`] free;
//! * before strict I/O a node looks at the announcement, without a message. After a new one it looks for the lock of a
//!   lazy node. If there is one, it locks [`STRICT_BYTE`], announces it, and waits until the lazy node, which looks at
//!   announcements every few milliseconds, has written back and unlocked.

use std::collections::HashMap;
use std::ffi::c_int;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use forebay_host::clock;
use parking_lot::{Mutex, RwLock, RwLockReadGuard};

use crate::error::Errno;
use crate::inodes::Inodes;
use crate::lazy_file::LazyFile;
use crate::opened::CephFile;
use crate::ranges::{LAZY_BYTE, STRICT_BYTE, byte_lock};
use crate::regular_reads::AskedPieces;

/// The owner of both locks.
const OWNER: u64 = u64::MAX >> 2;
/// Between two looks for a lazy node that is to write back.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);
/// How long a node may take to write back. A lost one has no locks any more.
const WRITE_BACK_MAX: Duration = Duration::from_secs(60);

pub(crate) struct OpenInode {
    all: Arc<Inodes>,
    /// The kernel's number.
    pub(crate) node: u64,
    /// I/O holds it shared. A change of the mode, and what forgets the cache, holds it alone.
    gate: RwLock<Mode>,
    is_lazy: AtomicBool,
    files: Mutex<HashMap<u64, HandleState>>,
    last_file: AtomicU64,
    /// The announcement after which no other node was lazy.
    checked: AtomicU64,
    /// The lock of [`STRICT_BYTE`]. It stays until all files are closed.
    claim: Mutex<Option<CephFile>>,
    /// What this node has read ahead of it.
    pub(crate) asked_pieces: Mutex<AskedPieces>,
}

/// How an inode is read and written.
pub(crate) enum Mode {
    Strict,
    Lazy(Lazy),
}

/// All files of a lazy inode.
pub(crate) struct Lazy {
    files: HashMap<u64, LazyFile>,
    /// Has the lock of [`LAZY_BYTE`].
    guard: CephFile,
    /// The announcement of strict files up to which [`STRICT_BYTE`] was free.
    strict_seen: AtomicU64,
}

/// An open file, and what it asked for.
struct HandleState {
    access: c_int,
    /// Asks for lazy I/O by this path.
    path: Option<PathBuf>,
    /// An error of writing back that the program has not got yet.
    error: Option<Errno>,
}

impl Mode {
    pub(crate) fn lazy_file(&self, file: u64) -> Option<&LazyFile> {
        match self {
            Self::Strict => None,
            Self::Lazy(lazy) => lazy.files.get(&file),
        }
    }
}

impl Lazy {
    /// Forgets what is cached, after it was written back. The caller has the gate alone.
    fn forget_cached(&self) -> Result<(), Errno> {
        self.files.values().next().map_or(Ok(()), LazyFile::forget_cached)
    }
}

impl Drop for OpenInode {
    fn drop(&mut self) {
        self.all.forget(self.node);
    }
}

impl OpenInode {
    pub(crate) fn new(all: &Arc<Inodes>, node: u64) -> Self {
        Self {
            all: Arc::clone(all),
            node,
            gate: RwLock::new(Mode::Strict),
            is_lazy: AtomicBool::new(false),
            files: Mutex::default(),
            last_file: AtomicU64::new(0),
            checked: AtomicU64::new(0),
            claim: Mutex::default(),
            asked_pieces: Mutex::default(),
        }
    }

    /// Fails if data were lost, of `length` bytes from `offset` on; none: up to the end.
    pub(crate) fn check_data(&self, offset: i64, length: Option<usize>) -> Result<(), Errno> {
        let offset = u64::try_from(offset).unwrap_or_default();
        let length = length.map(|length| length as u64);
        self.all.lost.check(&self.all.client, self.node, offset, length)
    }

    /// The size on all nodes.
    pub(crate) fn size(&self) -> Result<u64, Errno> {
        self.all.client.size(self.node)
    }

    pub(crate) fn is_lazy(&self) -> bool {
        self.is_lazy.load(Ordering::Acquire)
    }

    /// One more open file; returns its number.
    pub(crate) fn add(&self, access: c_int) -> u64 {
        let number = self.last_file.fetch_add(1, Ordering::Relaxed) + 1;
        self.files.lock().insert(number, HandleState { access, path: None, error: None });
        number
    }

    /// An open file ends. The others can be lazy if it was the last that had not asked.
    pub(crate) fn remove(self: &Arc<Self>, file: u64) {
        let has_asked = self.files.lock().remove(&file).is_some_and(|one| one.path.is_some());
        if has_asked {
            let mut mode = self.gate.write();
            if let Mode::Lazy(lazy) = &mut *mode {
                match lazy.files.len() {
                    0 | 1 => self.end_in(&mut mode),
                    _ => drop(lazy.files.remove(&file)),
                }
            }
        } else if let Err(error) = self.make_lazy() {
            eprintln!("a file stays strict after error {}", error.0);
        }
    }

    /// Notes that an open file asks for lazy I/O. True: it is lazy now.
    pub(crate) fn ask(self: &Arc<Self>, file: u64, path: PathBuf) -> Result<bool, Errno> {
        if let Some(asked) = self.files.lock().get_mut(&file) {
            asked.path = Some(path);
        }
        self.make_lazy()
    }

    /// Writes back, and makes the inode strict until all files have asked again.
    pub(crate) fn stop_asking(&self, file: u64) -> Result<(), Errno> {
        if let Some(asked) = self.files.lock().get_mut(&file) {
            asked.path = None;
        }
        self.make_strict();
        self.take_error(file)
    }

    /// Writes back, forgets what is cached, and tries to become lazy if it is not. True: it is lazy now.
    pub(crate) fn sync(self: &Arc<Self>, file: u64) -> Result<bool, Errno> {
        self.write_back();
        self.take_error(file)?;
        let is_lazy = self.is_lazy() || self.make_lazy()?;
        self.flush_and_invalidate()?; // also what was cached before it became lazy
        Ok(is_lazy)
    }

    /// Writes back and forgets what is cached: after a lock was got, or before the file is cut.
    pub(crate) fn flush_and_invalidate(&self) -> Result<(), Errno> {
        if !self.is_lazy() {
            return Ok(());
        }
        let mode = self.gate.write();
        let Mode::Lazy(lazy) = &*mode else { return Ok(()) };
        self.write_back_all(lazy);
        self.asked_pieces.lock().forget();
        lazy.forget_cached()
    }

    /// Before a lock is given back: the next owner must see what was written.
    pub(crate) fn write_back(&self) {
        if self.is_lazy()
            && let Mode::Lazy(lazy) = &*self.gate.read()
        {
            self.write_back_all(lazy);
        }
    }

    /// Writes back what one open file may have written.
    pub(crate) fn write_back_own(&self, file: u64) -> Result<(), Errno> {
        if !self.is_lazy() {
            return Ok(());
        }
        self.gate.read().lazy_file(file).map_or(Ok(()), LazyFile::write_back_own)
    }

    /// Each file keeps its error until the program asks.
    fn write_back_all(&self, lazy: &Lazy) {
        for (number, file) in &lazy.files {
            if let Err(error) = file.write_back(true)
                && let Some(asked) = self.files.lock().get_mut(number)
            {
                asked.error.get_or_insert(error);
            }
        }
    }

    /// An error of writing back that an open file has not got yet.
    pub(crate) fn take_error(&self, file: u64) -> Result<(), Errno> {
        let error = self.files.lock().get_mut(&file).and_then(|asked| asked.error.take());
        error.map_or(Ok(()), Err)
    }

    /// Waits until an open file may be read or written, and how.
    pub(crate) fn for_io(
        &self,
        file: u64,
        opened: &CephFile,
    ) -> Result<RwLockReadGuard<'_, Mode>, Errno> {
        loop {
            let mode = self.gate.read();
            match &*mode {
                Mode::Lazy(lazy) if lazy.files.contains_key(&file) => return Ok(mode),
                Mode::Lazy(_) => {
                    drop(mode);
                    self.make_strict();
                }
                Mode::Strict => {
                    let announced = self.all.announcements.lazy_files()?;
                    if self.was_checked(announced) {
                        return Ok(mode);
                    }
                    drop(mode);
                    self.end_elsewhere(opened)?;
                    self.checked.store(announced, Ordering::Release);
                }
            }
        }
    }

    /// The same where nothing has to be waited for or changed; else none.
    pub(crate) fn mode_without_waiting(&self, file: u64) -> Option<RwLockReadGuard<'_, Mode>> {
        let mode = self.gate.try_read()?;
        let is_ready = match &*mode {
            Mode::Lazy(lazy) => lazy.files.contains_key(&file),
            Mode::Strict => {
                self.all.announcements.lazy_files().is_ok_and(|number| self.was_checked(number))
            }
        };
        is_ready.then_some(mode)
    }

    /// Whether no other node is lazy after this announcement.
    fn was_checked(&self, announced: u64) -> bool {
        announced == 0 || self.checked.load(Ordering::Acquire) == announced
    }

    /// Makes the inode lazy, if all its files have asked and no other node needs it strict.
    fn make_lazy(self: &Arc<Self>) -> Result<bool, Errno> {
        if !self.all_have_asked() {
            return Ok(false);
        }
        let mut mode = self.gate.write();
        if !self.all_have_asked() {
            return Ok(false);
        }
        if matches!(*mode, Mode::Strict) {
            let Some(lazy) = self.reserve()? else { return Ok(false) };
            *mode = Mode::Lazy(lazy);
            self.is_lazy.store(true, Ordering::Release);
        }
        let opened = self.open_all(&mut mode);
        if opened != Ok(true) {
            self.end_in(&mut mode);
            return opened;
        }
        drop(mode);
        self.all.watch(self);
        Ok(true)
    }

    fn all_have_asked(&self) -> bool {
        let files = self.files.lock();
        !files.is_empty() && files.values().all(|asked| asked.path.is_some())
    }

    /// Locks and announces; none if another node needs the inode strict.
    fn reserve(&self) -> Result<Option<Lazy>, Errno> {
        drop(self.claim.lock().take());
        let guard = self.all.client.open_for_locks(self.node)?;
        if !is_free(&guard, STRICT_BYTE)? {
            return Ok(None);
        }
        guard.set_lock(&byte_lock(libc::F_RDLCK, LAZY_BYTE), OWNER, false)?;
        // A claim that comes after this look changes the value.
        let strict_seen = AtomicU64::new(self.all.announcements.strict_version()?);
        self.all.announcements.begin_lazy()?;
        if is_free(&guard, STRICT_BYTE) == Ok(true) {
            return Ok(Some(Lazy { files: HashMap::new(), guard, strict_seen }));
        }
        self.all.announcements.end_lazy();
        Ok(None)
    }

    /// Opens all files again that are not yet. False: one cannot be, and has not asked any more.
    fn open_all(&self, mode: &mut Mode) -> Result<bool, Errno> {
        let Mode::Lazy(lazy) = mode else { return Ok(false) };
        let ino = self.all.client.ino(self.node)?;
        for (number, asked) in self.files.lock().iter_mut() {
            let Some(path) = asked.path.as_ref().filter(|_| !lazy.files.contains_key(number))
            else {
                continue;
            };
            let Some(file) = self.all.open_lazily(path, asked.access, ino)? else {
                asked.path = None;
                return Ok(false);
            };
            lazy.files.insert(*number, file);
        }
        Ok(true)
    }

    pub(crate) fn make_strict(&self) {
        self.end_in(&mut self.gate.write());
    }

    /// Writes back, forgets what is cached, and unlocks.
    fn end_in(&self, mode: &mut Mode) {
        let Mode::Lazy(lazy) = std::mem::replace(mode, Mode::Strict) else { return };
        self.write_back_all(&lazy);
        self.asked_pieces.lock().forget();
        if let Err(error) = lazy.forget_cached() {
            eprintln!("cannot forget what is cached of a lazy file: error {}", error.0);
        }
        let Lazy { files, guard, .. } = lazy;
        drop(files);
        self.is_lazy.store(false, Ordering::Release);
        if let Err(error) = guard.set_lock(&byte_lock(libc::F_UNLCK, LAZY_BYTE), OWNER, false) {
            eprintln!("cannot unlock a lazy file: error {}", error.0);
        }
        drop(guard);
        self.all.announcements.end_lazy();
    }

    /// Makes the inode strict if another node needs it. `announced` is what nodes announced last.
    pub(crate) fn end_if_needed(&self, announced: u64) {
        let mode = self.gate.read();
        let Mode::Lazy(lazy) = &*mode else { return };
        if lazy.strict_seen.load(Ordering::Relaxed) == announced {
            return;
        }
        match is_free(&lazy.guard, STRICT_BYTE) {
            Ok(true) => lazy.strict_seen.store(announced, Ordering::Relaxed),
            Ok(false) => {
                drop(mode);
                self.make_strict();
            }
            Err(error) => eprintln!("cannot ask for the lock of a lazy file: error {}", error.0),
        }
    }

    /// Waits until no other node is lazy.
    fn end_elsewhere(&self, opened: &CephFile) -> Result<(), Errno> {
        let mut claim = self.claim.lock();
        if is_free(opened, LAZY_BYTE)? {
            return Ok(());
        }
        if claim.is_none() {
            let guard = self.all.client.open_for_locks(self.node)?;
            guard.set_lock(&byte_lock(libc::F_RDLCK, STRICT_BYTE), OWNER, false)?;
            *claim = Some(guard);
        }
        self.all.announcements.announce_strict()?;
        let began = clock::now();
        while !is_free(opened, LAZY_BYTE)? {
            if began.elapsed() > WRITE_BACK_MAX {
                eprintln!(
                    "a node did not write back a lazy file within {} s",
                    WRITE_BACK_MAX.as_secs()
                );
                return Err(Errno(libc::ETIMEDOUT));
            }
            clock::sleep(LOOK_INTERVAL);
        }
        Ok(())
    }
}

/// Whether no other node has locked the byte.
fn is_free(opened: &CephFile, byte: i64) -> Result<bool, Errno> {
    let holder = opened.lock_holder(&byte_lock(libc::F_WRLCK, byte), OWNER)?;
    Ok(holder.l_type == libc::F_UNLCK as i16)
}
