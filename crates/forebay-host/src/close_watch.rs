//! Reports files in directory trees after their last writer closes them, each version once. A
//! version is the content after the last close, whether the writer changed it or not. Reports a
//! truncation by path or a new hard link only on [`WatchHandle::finish`]: neither causes an event.

mod kernel;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::files::{self, Kind, Status};
use crate::{Error, Result, clock};
use kernel::{CloseCheck, KernelEvent};

pub use kernel::is_closed;

/// The kernel queues the close event just before it detaches the writer. Retries of the lease wait
/// for this time, then twice this time, and so on.
const FIRST_RETRY: Duration = Duration::from_millis(1);
/// The number of retries. After them, a writer has the file open, and its close causes an event.
const TRIES: u32 = 7;

/// A version of a file that its last writer has closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// The file, in a watched directory tree.
    pub path: PathBuf,
    /// Starts at 1 for each name when the watch begins, and counts up.
    pub version: u64,
    /// The status at the time of the check.
    pub status: Status,
}

/// An event of a watch.
#[derive(Debug)]
pub enum CloseEvent {
    /// A new version of a file is closed.
    Closed(Closed),
    /// The watcher has reported all files closed before the request with this ticket.
    Drained(u64),
    /// The watcher cannot watch a new directory or read a file. It reports files closed there only
    /// at the end.
    Unseen(Error),
    /// The file system grants no lease: close events alone count there. Reported once.
    NoLease(Error),
    /// [`WatchHandle::finish`] or [`WatchHandle::stop`] ended the watch, or no directory is left.
    End,
}

/// A watch over directory trees.
pub struct CloseWatcher {
    roots: Vec<PathBuf>,
    inotify: OwnedFd,
    handle: WatchHandle,
    answered: u64,
    directories: HashMap<i32, PathBuf>,
    seen: HashMap<PathBuf, LastClosed>,
    pending: Pending,
    /// Files that had a writer at the last check.
    retries: HashMap<PathBuf, Retry>,
    troubles: Vec<CloseEvent>,
    no_lease_told: bool,
    looked_through_at_the_end: bool,
}

/// Controls a watch from other threads, and wakes [`CloseWatcher::wait`].
#[derive(Clone)]
pub struct WatchHandle(Arc<Shared>);

struct Shared {
    event: OwnedFd,
    asked: AtomicU64,
    end: AtomicU8,
    /// Paths where the kernel reports no event.
    reported: Mutex<Vec<PathBuf>>,
    /// What was found since the last look; none if nobody looks.
    found: Mutex<Option<DiscoveredPaths>>,
}

/// What other nodes need to know.
#[derive(Debug, Default)]
pub struct DiscoveredPaths {
    /// Directories that are watched.
    pub directories: Vec<PathBuf>,
    /// Files in reported directories. No process of this machine writes them; one of another node may.
    pub files: Vec<PathBuf>,
}

const GO_ON: u8 = 0;
const FINISH: u8 = 1;
const STOP: u8 = 2;

struct LastClosed {
    version: u64,
    status: Status,
}

struct Retry {
    tries: u32,
    due: Option<Instant>,
}

/// Paths to check, in the order of their last event.
#[derive(Default)]
struct Pending {
    next: u64,
    in_order: BTreeMap<u64, PathBuf>,
    places: HashMap<PathBuf, u64>,
}

impl Pending {
    fn add(&mut self, path: PathBuf) {
        if let Some(place) = self.places.insert(path.clone(), self.next) {
            self.in_order.remove(&place);
        }
        self.in_order.insert(self.next, path);
        self.next += 1;
    }

    fn take(&mut self) -> Option<PathBuf> {
        let (_, path) = self.in_order.pop_first()?;
        self.places.remove(&path);
        Some(path)
    }

    fn remove(&mut self, path: &Path) {
        if let Some(place) = self.places.remove(path) {
            self.in_order.remove(&place);
        }
    }
}

impl WatchHandle {
    /// Requests [`CloseEvent::Drained`] after the report of all files that are closed now.
    ///
    /// # Errors
    /// If the kernel refuses the write to the eventfd.
    pub fn request_ticket(&self) -> Result<u64> {
        let ticket = self.0.asked.fetch_add(1, Ordering::SeqCst) + 1;
        kernel::wake(&self.0.event)?;
        Ok(ticket)
    }

    /// Looks at a file that was closed, or watches a directory that was made, where this machine sees no event: by a
    /// process of another node. Files in the directory are not reported, but found.
    ///
    /// # Errors
    /// If the kernel refuses the write to the eventfd.
    pub fn report(&self, path: PathBuf) -> Result<()> {
        self.0.reported.lock().push(path);
        kernel::wake(&self.0.event)
    }

    /// What was found since the last call. The first call begins to collect.
    pub fn take_found(&self) -> DiscoveredPaths {
        self.0.found.lock().replace(DiscoveredPaths::default()).unwrap_or_default()
    }

    /// Reports all remaining files, including those that only a scan finds, and ends the watch.
    pub fn finish(&self) -> Result<()> {
        self.0.end.fetch_max(FINISH, Ordering::SeqCst);
        kernel::wake(&self.0.event)
    }

    /// Ends the watch immediately.
    pub fn stop(&self) -> Result<()> {
        self.0.end.fetch_max(STOP, Ordering::SeqCst);
        kernel::wake(&self.0.event)
    }
}

impl CloseWatcher {
    /// Watches these directory trees. Does not report files that exist now, unless they change.
    ///
    /// # Errors
    /// If a directory cannot be watched. ENOSPC and EMFILE mean limits of fs.inotify.
    pub fn watch(roots: &[&Path]) -> Result<Self> {
        let handle = WatchHandle(Arc::new(Shared {
            event: kernel::event()?,
            asked: AtomicU64::new(0),
            end: AtomicU8::new(GO_ON),
            reported: Mutex::default(),
            found: Mutex::default(),
        }));
        let mut closes = Self {
            roots: roots.iter().map(|root| (*root).to_owned()).collect(),
            inotify: kernel::inotify()?,
            handle,
            answered: 0,
            directories: HashMap::new(),
            seen: HashMap::new(),
            pending: Pending::default(),
            retries: HashMap::new(),
            troubles: Vec::new(),
            no_lease_told: false,
            looked_through_at_the_end: false,
        };
        for root in roots {
            files::status(root)?;
            closes.scan(root);
        }
        if let Some(CloseEvent::Unseen(error)) = closes.troubles.pop() {
            return Err(error);
        }
        for path in std::mem::take(&mut closes.pending).in_order.into_values() {
            if let Ok(status) = files::status_of_name(&path) {
                closes.seen.insert(path, LastClosed { version: 0, status });
            }
        }
        Ok(closes)
    }

    /// Returns a handle for other threads.
    pub fn handle(&self) -> WatchHandle {
        self.handle.clone()
    }

    /// Waits for the next event.
    pub fn wait(&mut self) -> Result<CloseEvent> {
        loop {
            let shared = &self.handle.0;
            let (asked, end) =
                (shared.asked.load(Ordering::SeqCst), shared.end.load(Ordering::SeqCst));
            for raw in kernel::read(&self.inotify)? {
                self.apply(raw, None);
            }
            self.take_reported();
            if let Some(trouble) = self.troubles.pop() {
                return Ok(trouble);
            }
            if end == STOP {
                return Ok(CloseEvent::End);
            }
            if let Some(path) = self.pending.take() {
                match self.check_closed(path)? {
                    Some(told) => return Ok(told),
                    None => continue,
                }
            }
            let again = self.queue_due_retries();
            if !self.pending.in_order.is_empty() {
                continue;
            }
            if again.is_none() {
                if asked > self.answered {
                    self.answered = asked;
                    return Ok(CloseEvent::Drained(asked));
                }
                if end == FINISH && !self.looked_through_at_the_end {
                    self.looked_through_at_the_end = true;
                    self.scan_all();
                    continue;
                }
                if end == FINISH || self.directories.is_empty() {
                    return Ok(CloseEvent::End);
                }
            }
            kernel::wait(&self.inotify, &self.handle.0.event, again)?;
        }
    }

    /// Queues what another node reported.
    fn take_reported(&mut self) {
        let reported = std::mem::take(&mut *self.handle.0.reported.lock());
        for path in reported {
            if !self.roots.iter().any(|root| path.starts_with(root)) {
                continue;
            }
            match files::status_of_name(&path).map(|status| status.kind) {
                Ok(Kind::Directory) => {
                    let queued = std::mem::take(&mut self.pending);
                    self.scan(&path);
                    let files = std::mem::replace(&mut self.pending, queued);
                    if let Some(found) = self.handle.0.found.lock().as_mut() {
                        found.files.extend(files.in_order.into_values());
                    }
                }
                Ok(Kind::File) if !self.is_as_seen(&path) => {
                    self.retries.remove(&path);
                    self.pending.add(path);
                }
                Ok(Kind::File) => {}
                Ok(Kind::Link | Kind::Other) | Err(_) => {}
            }
        }
    }

    /// Checks whether a writer has the file open, and reports a new version if not. inotify reports
    /// the close of any writer. Only a read lease shows whether it was the last one. The kernel
    /// grants none while a descriptor or a shared mapping can write to the file.
    fn check_closed(&mut self, path: PathBuf) -> Result<Option<CloseEvent>> {
        let status = match kernel::take_lease(&path) {
            CloseCheck::Gone => {
                self.retries.remove(&path);
                return Ok(None);
            }
            CloseCheck::Open => {
                self.schedule_retry(path);
                return Ok(None);
            }
            CloseCheck::Unknown(error) => {
                if self.schedule_retry(path.clone()) {
                    return Ok(None);
                }
                self.retries.remove(&path);
                return Ok(Some(CloseEvent::Unseen(error)));
            }
            CloseCheck::Unleased(status, error) => {
                if !std::mem::replace(&mut self.no_lease_told, true) {
                    self.troubles.push(CloseEvent::NoLease(error));
                }
                status
            }
            CloseCheck::Closed(lease) => {
                // The close events of earlier writers are now in the queue, for this version.
                let events = kernel::read(&self.inotify);
                let status = lease.status;
                drop(lease);
                self.pending.remove(&path);
                for raw in events? {
                    self.apply(raw, Some(&path));
                }
                status
            }
        };
        self.retries.remove(&path);
        let version = self.seen.get(&path).map_or(0, |seen| seen.version) + 1;
        self.seen.insert(path.clone(), LastClosed { version, status });
        Ok(Some(CloseEvent::Closed(Closed { path, version, status })))
    }

    /// Schedules a retry. Returns false if all retries are used.
    fn schedule_retry(&mut self, path: PathBuf) -> bool {
        let retry = self.retries.entry(path).or_insert(Retry { tries: 0, due: None });
        retry.due = (retry.tries < TRIES).then(|| clock::now() + FIRST_RETRY * (1 << retry.tries));
        retry.tries += 1;
        retry.due.is_some()
    }

    /// Queues the files that are due for a retry. Returns the time of the next retry.
    fn queue_due_retries(&mut self) -> Option<Instant> {
        let now = clock::now();
        let mut first: Option<Instant> = None;
        for (path, retry) in &mut self.retries {
            match retry.due {
                Some(due) if due <= now => {
                    retry.due = None;
                    self.pending.add(path.clone());
                }
                Some(due) => first = Some(first.map_or(due, |first| first.min(due))),
                None => {}
            }
        }
        first
    }

    fn apply(&mut self, raw: KernelEvent, told: Option<&Path>) {
        match raw {
            KernelEvent::Lost => self.scan_all(),
            KernelEvent::Unwatched(watch) => {
                self.directories.remove(&watch);
            }
            KernelEvent::Directory(watch, name) => {
                if let Some(parent) = self.directories.get(&watch) {
                    let path = parent.join(name);
                    self.scan(&path);
                }
            }
            KernelEvent::DirectoryGone(watch, name) => {
                if let Some(parent) = self.directories.get(&watch) {
                    let gone = parent.join(name);
                    let moved = self.directories.iter();
                    let moved = moved.filter(|(_, path)| path.starts_with(&gone));
                    let moved: Vec<_> = moved.map(|(watch, _)| *watch).collect();
                    for watch in moved {
                        self.directories.remove(&watch);
                        kernel::unwatch(&self.inotify, watch);
                    }
                }
            }
            KernelEvent::Closed(watch, name) => self.file(watch, &name, told),
            KernelEvent::Arrived(watch, name) => self.file(watch, &name, None),
        }
    }

    fn file(&mut self, watch: i32, name: &std::ffi::OsStr, told: Option<&Path>) {
        let Some(path) = self.directories.get(&watch).map(|path| path.join(name)) else {
            return;
        };
        if told != Some(&path) {
            self.retries.remove(&path); // start the retries from the beginning
            self.pending.add(path);
        }
    }

    fn scan_all(&mut self) {
        for root in self.roots.clone() {
            self.scan(&root);
        }
    }

    /// Watches a directory tree, and queues files that differ from their last known status. Watches
    /// each directory before listing it, to miss no file. Ignores names that disappear meanwhile.
    fn scan(&mut self, top: &Path) {
        let mut open = vec![top.to_owned()];
        let mut done = HashSet::new();
        while let Some(directory) = open.pop() {
            match kernel::watch(&self.inotify, &directory) {
                Ok(Some(watch)) if done.insert(watch) => {
                    let is_new = self.directories.insert(watch, directory.clone()).is_none();
                    if let (true, Some(found)) = (is_new, self.handle.0.found.lock().as_mut()) {
                        found.directories.push(directory.clone());
                    }
                }
                Ok(_) => continue,
                Err(error) => {
                    self.troubles.push(CloseEvent::Unseen(error));
                }
            }
            for (name, kind) in files::kinds_in(&directory).unwrap_or_default() {
                let path = directory.join(name);
                match kind {
                    Kind::Directory => open.push(path),
                    Kind::File if !self.is_as_seen(&path) => self.pending.add(path),
                    Kind::File | Kind::Link | Kind::Other => {}
                }
            }
        }
    }

    fn is_as_seen(&self, path: &Path) -> bool {
        let seen = self.seen.get(path).map(|seen| seen.status);
        seen.is_some_and(|seen| {
            files::status_of_name(path).is_ok_and(|now| now.is_same_content(&seen))
        })
    }
}
