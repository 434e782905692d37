//! The copy engine: workers that take whole small files, or pieces of large ones.

use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use forebay_host::files::{self, Kind};

use crate::parts::temporary;
use crate::plan::{Entry, Plan};
use crate::{Error, Failure};

/// Bytes of one read and one write: what parallel file systems like to get at once.
const BLOCK_BYTES: usize = 4 << 20;

/// How to copy.
#[derive(Debug, Clone)]
pub struct Options {
    /// Threads, at least 1.
    pub workers: usize,
    /// A file larger than this is copied in pieces of this size by several threads.
    pub piece_bytes: u64,
    /// Sync each file before it is renamed, and each directory at the end.
    pub durable: bool,
    /// Part of the temporary names, so that two jobs never meet.
    pub tag: String,
}

/// What was done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Moved {
    /// Files that arrived.
    pub files: u64,
    /// Bytes of the files that arrived.
    pub bytes: u64,
    /// What did not arrive, the plan's own failures included.
    pub failures: Vec<Failure>,
}

/// Called with the number of bytes each time some were copied.
type OnBytes<'a> = &'a (dyn Fn(u64) + Sync);
/// Asked before each block whether to stop.
type Cancelled<'a> = &'a (dyn Fn() -> bool + Sync);

/// Copies all that is planned.
///
/// # Errors
/// Never as a whole: each thing that fails is in [`Moved::failures`].
pub fn carry_out(plan: &Plan, options: &Options, on_bytes: OnBytes, cancelled: Cancelled) -> Moved {
    let run = Run {
        plan,
        options,
        on_bytes,
        cancelled,
        queue: Mutex::new(Queue {
            tasks: (0..plan.files.len()).map(Task::Begin).collect(),
            busy: 0,
        }),
        queued: Condvar::new(),
        failures: Mutex::new(plan.failures.clone()),
        files: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
        changed: Mutex::new(BTreeSet::new()),
    };
    let made = run.make_directories();
    std::thread::scope(|scope| {
        for _ in 0..options.workers.max(1) {
            scope.spawn(|| run.work());
        }
    });
    run.make_links();
    run.finish_directories(&made);
    let mut failures = run
        .failures
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    failures.sort_by(|a, b| a.path.cmp(&b.path));
    Moved {
        files: run.files.into_inner(),
        bytes: run.bytes.into_inner(),
        failures,
    }
}

enum Task {
    /// Open the file with this index in the plan.
    Begin(usize),
    /// Copy this range of an open file.
    Piece(Arc<Copying>, u64, u64),
}

struct Queue {
    tasks: VecDeque<Task>,
    /// Workers with a task in hand, which may still add tasks.
    busy: usize,
}

/// A file between its first and its last byte.
struct Copying {
    index: usize,
    source: File,
    target: File,
    temporary: PathBuf,
    pieces_left: AtomicUsize,
    failure: Mutex<Option<String>>,
}

struct Run<'a> {
    plan: &'a Plan,
    options: &'a Options,
    on_bytes: OnBytes<'a>,
    cancelled: Cancelled<'a>,
    queue: Mutex<Queue>,
    queued: Condvar,
    failures: Mutex<Vec<Failure>>,
    files: AtomicU64,
    bytes: AtomicU64,
    /// Directories in which a name appeared, to be synced at the end.
    changed: Mutex<BTreeSet<PathBuf>>,
}

impl Run<'_> {
    fn work(&self) {
        let mut block = vec![0; BLOCK_BYTES];
        while let Some(task) = self.take() {
            match task {
                Task::Begin(index) => self.begin(index, &mut block),
                Task::Piece(copying, from, to) => self.piece(&copying, from, to, &mut block),
            }
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            queue.busy -= 1;
            self.queued.notify_all();
        }
    }

    /// The next task; `None` when there is none and nobody can add one.
    fn take(&self) -> Option<Task> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(task) = queue.tasks.pop_front() {
                queue.busy += 1;
                return Some(task);
            }
            if queue.busy == 0 {
                return None;
            }
            queue = self
                .queued
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn begin(&self, index: usize, block: &mut [u8]) {
        let size = self.plan.files[index].status.size_bytes;
        let piece = self.options.piece_bytes.max(1);
        let pieces = size.div_ceil(piece).max(1);
        let copying = match self.open(index, usize::try_from(pieces).unwrap_or(usize::MAX)) {
            Ok(copying) => Arc::new(copying),
            Err(reason) => return self.fail(&self.plan.files[index].source, reason),
        };
        {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            for number in (1..pieces).rev() {
                let from = number * piece;
                let to = size.min(from + piece);
                queue
                    .tasks
                    .push_front(Task::Piece(Arc::clone(&copying), from, to));
            }
            self.queued.notify_all();
        }
        self.piece(&copying, 0, size.min(piece), block);
    }

    fn open(&self, index: usize, pieces: usize) -> Result<Copying, String> {
        self.check_cancelled()?;
        self.open_both(index, pieces)
            .map_err(|error| error.to_string())
    }

    fn check_cancelled(&self) -> Result<(), String> {
        if (self.cancelled)() {
            return Err("staging was stopped".into());
        }
        Ok(())
    }

    fn open_both(&self, index: usize, pieces: usize) -> forebay_host::Result<Copying> {
        let entry = &self.plan.files[index];
        let source = files::open_to_read(&entry.source)?;
        let directory = entry.target.parent().unwrap_or(Path::new("/"));
        let temporary = temporary(&entry.target, &self.options.tag, &index.to_string());
        let target = match files::make_file(&temporary, 0o600) {
            Err(error) if error.is_not_found() => {
                self.make_directory(directory)?;
                files::make_file(&temporary, 0o600)?
            }
            made => made?,
        };
        Ok(Copying {
            index,
            source,
            target,
            temporary,
            pieces_left: AtomicUsize::new(pieces),
            failure: Mutex::new(None),
        })
    }

    fn piece(&self, copying: &Copying, from: u64, to: u64, block: &mut [u8]) {
        if let Err(reason) = self.copy_range(copying, from, to, block) {
            let mut failure = copying
                .failure
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            failure.get_or_insert(reason);
        }
        if copying.pieces_left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.finish(copying);
        }
    }

    fn copy_range(
        &self,
        copying: &Copying,
        from: u64,
        to: u64,
        block: &mut [u8],
    ) -> Result<(), String> {
        let entry = &self.plan.files[copying.index];
        let mut at = from;
        while at < to {
            self.check_cancelled()?;
            let wanted = usize::try_from(to - at).map_or(block.len(), |left| left.min(block.len()));
            let read = files::named(
                copying.source.read_at(&mut block[..wanted], at),
                "read",
                &entry.source,
            )
            .map_err(|error| error.to_string())?;
            if read == 0 {
                return Err("it became shorter while it was copied".into());
            }
            let written = copying.target.write_all_at(&block[..read], at);
            files::named(written, "write", &entry.target).map_err(|error| error.to_string())?;
            at += read as u64;
            (self.on_bytes)(read as u64);
        }
        Ok(())
    }

    /// After the last piece: puts the file in its place, or takes the half of it away.
    fn finish(&self, copying: &Copying) {
        let entry = &self.plan.files[copying.index];
        let failure = copying
            .failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let placed = match failure {
            Some(reason) => Err(reason),
            None => self.place(copying, entry),
        };
        match placed {
            Ok(()) => {
                self.files.fetch_add(1, Ordering::Relaxed);
                self.bytes
                    .fetch_add(entry.status.size_bytes, Ordering::Relaxed);
            }
            Err(reason) => {
                self.fail(&entry.source, reason);
                if let Err(error) = files::remove_file(&copying.temporary) {
                    self.fail(&copying.temporary, error.to_string());
                }
            }
        }
    }

    fn place(&self, copying: &Copying, entry: &Entry) -> Result<(), String> {
        let text = |error: forebay_host::Error| error.to_string();
        let now = files::status_of(&copying.source, &entry.source).map_err(text)?;
        if (now.size_bytes, now.modified) != (entry.status.size_bytes, entry.status.modified) {
            return Err("it was changed while it was copied".into());
        }
        // Files of /proc and /sys say that they are empty, and are not.
        if now.size_bytes == 0 && copying.source.read_at(&mut [0], 0).unwrap_or(0) > 0 {
            return Err("it holds more than its size says".into());
        }
        files::set_mode(&copying.temporary, entry.status.mode).map_err(text)?;
        files::set_times(&copying.temporary, &entry.status).map_err(text)?;
        if self.options.durable {
            files::named(copying.target.sync_all(), "sync", &entry.target).map_err(text)?;
        }
        files::rename(&copying.temporary, &entry.target).map_err(text)?;
        self.note_change(&entry.target);
        Ok(())
    }

    /// A name appeared: its directory has to be synced.
    fn note_change(&self, path: &Path) {
        if let Some(parent) = path.parent() {
            let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
            changed.insert(parent.to_owned());
        }
    }

    fn make_directory(&self, path: &Path) -> forebay_host::Result<()> {
        for made in files::make_directories(path, 0o777)? {
            self.note_change(&made);
        }
        Ok(())
    }

    /// Makes the directories that are missing, open to us while they are filled. Returns their
    /// indices. One that was there keeps its mode: if we may not write in it, that is a failure.
    fn make_directories(&self) -> Vec<usize> {
        let mut made = Vec::new();
        for (index, entry) in self.plan.directories.iter().enumerate() {
            match files::status(&entry.target) {
                Ok(status) if status.kind == Kind::Directory => {}
                Ok(_) => self.fail(&entry.target, "it is in the way: not a directory".into()),
                Err(_) => match self.make_directory(&entry.target) {
                    Ok(()) => made.push(index),
                    Err(error) => self.fail(&entry.target, error.to_string()),
                },
            }
        }
        made
    }

    /// Gives the directories that were made their modes and times, children before parents, and
    /// syncs every directory in which a name appeared.
    fn finish_directories(&self, made: &[usize]) {
        for &index in made.iter().rev() {
            let entry = &self.plan.directories[index];
            let done = files::set_mode(&entry.target, entry.status.mode)
                .and_then(|()| files::set_times(&entry.target, &entry.status));
            if let Err(error) = done {
                self.fail(&entry.target, error.to_string());
            }
        }
        if !self.options.durable {
            return;
        }
        let changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        for directory in changed.iter() {
            if let Err(error) = files::sync_directory(directory) {
                self.fail(directory, error.to_string());
            }
        }
    }

    fn make_links(&self) {
        for (index, entry) in self.plan.links.iter().enumerate() {
            let made = self
                .check_cancelled()
                .and_then(|()| self.make_link(index, entry));
            match made {
                Ok(()) => {
                    self.files.fetch_add(1, Ordering::Relaxed);
                    self.note_change(&entry.target);
                }
                Err(reason) => self.fail(&entry.source, reason),
            }
        }
    }

    fn make_link(&self, index: usize, entry: &Entry) -> Result<(), String> {
        let text = |error: forebay_host::Error| error.to_string();
        let temporary = temporary(&entry.target, &self.options.tag, &format!("l{index}"));
        let leads_to = files::read_link(&entry.source).map_err(text)?;
        files::make_link(&leads_to, &temporary).map_err(text)?;
        let placed = files::set_times(&temporary, &entry.status)
            .and_then(|()| files::rename(&temporary, &entry.target));
        placed.map_err(|error| match files::remove_file(&temporary) {
            Ok(()) => error.to_string(),
            Err(second) => format!("{error}; {second}"),
        })
    }

    fn fail(&self, path: &Path, reason: String) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.push(Failure {
            path: path.to_owned(),
            reason,
        });
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let path = match &error {
            Error::Host(error) => error.path.clone(),
            Error::NoSource(path) | Error::NotAFile(path) | Error::NotADirectory(path) => {
                path.clone()
            }
        };
        let reason = error.to_string();
        Self { path, reason }
    }
}
