//! Wraps inotify(7), leases (fcntl(2)) and eventfd(2). A lease makes a writer wait at open(2) until it is dropped.
//! Assumes that the process ignores SIGURG, which the kernel sends then. Never opens a link or waits at a fifo.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::files::{self, Kind, Status};
use crate::{Error, Result, clock, with_context};

/// A kernel event, with the number of the watch on the directory.
pub(super) enum KernelEvent {
    /// The queue overflowed, and the kernel dropped events.
    Lost,
    /// The directory is no longer watched.
    Unwatched(i32),
    /// A directory was created here or moved here.
    Directory(i32, OsString),
    /// A directory was moved away.
    DirectoryGone(i32, OsString),
    /// A writer closed the file.
    Closed(i32, OsString),
    /// The file was moved here.
    Arrived(i32, OsString),
}

/// The result of a check of a file.
pub(super) enum CloseCheck {
    /// No writer has the file open, and none can open it until the lease is dropped.
    Closed(Lease),
    /// A writer has the file open.
    Open,
    /// No regular file has this name.
    Gone,
    /// The kernel or the file system grants no lease on it.
    Unleased(Status, Error),
    /// The check failed, perhaps temporarily, for example because no descriptors are free.
    Unknown(Error),
}

/// A read lease. The kernel blocks writers that open the file until the lease is dropped.
pub(super) struct Lease {
    file: File,
    pub(super) status: Status,
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Closing the file would release the lease, too.
        set(&self.file, libc::F_SETLEASE, libc::F_UNLCK).ok();
    }
}

/// From fcntl(2). Linux uses the same number on all architectures.
const F_SETSIG: libc::c_int = 10;

fn set(file: &File, what: libc::c_int, value: libc::c_int) -> std::io::Result<()> {
    // SAFETY: these calls take a number and an open descriptor, which `file` owns.
    match unsafe { libc::fcntl(file.as_raw_fd(), what, value) } {
        -1 => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// The status of a regular file without writers. Without leases, does not check for writers.
pub fn is_closed(path: &Path) -> Result<Option<Status>> {
    match take_lease(path) {
        CloseCheck::Closed(Lease { status, .. }) | CloseCheck::Unleased(status, _) => {
            Ok(Some(status))
        }
        CloseCheck::Open | CloseCheck::Gone => Ok(None),
        CloseCheck::Unknown(error) => Err(error),
    }
}

pub(super) fn take_lease(path: &Path) -> CloseCheck {
    // Opening a fifo does not block, and symbolic links are not followed.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        // An unreadable file has a status, too. Its copy fails later with a clear error.
        Err(Errno::ACCESS | Errno::PERM) => return without_lease(path, Errno::ACCESS.into()),
        // NXIO and NODEV: the name belongs to a socket or a device.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO | Errno::NODEV) => {
            return CloseCheck::Gone;
        }
        Err(Errno::AGAIN) => return CloseCheck::Open, // a writer has a lease on it
        Err(error) => {
            return CloseCheck::Unknown(Error {
                operation: "look at",
                path: path.to_owned(),
                source: error.into(),
            });
        }
    };
    let status = match files::status_of(&file, path) {
        Ok(status) if status.kind == Kind::File => status,
        Ok(_) => return CloseCheck::Gone,
        Err(error) => return CloseCheck::Unknown(error),
    };
    // The kernel sends a signal when a writer opens the file, and the writer waits. The default
    // signal, SIGIO, would end the process. SIGURG is ignored by default.
    let leased = set(&file, F_SETSIG, libc::SIGURG)
        .and_then(|()| set(&file, libc::F_SETLEASE, libc::F_RDLCK));
    match leased {
        Ok(()) => match files::status_of(&file, path) {
            Ok(status) => CloseCheck::Closed(Lease { file, status }),
            Err(error) => CloseCheck::Unknown(error),
        },
        Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => CloseCheck::Open,
        Err(error) => CloseCheck::Unleased(status, lease_error(path, error)),
    }
}

fn without_lease(path: &Path, error: std::io::Error) -> CloseCheck {
    match files::status_of_name(path) {
        Ok(status) if status.kind == Kind::File => {
            CloseCheck::Unleased(status, lease_error(path, error))
        }
        Err(error) if !error.is_not_found() => CloseCheck::Unknown(error),
        Ok(_) | Err(_) => CloseCheck::Gone,
    }
}

fn lease_error(path: &Path, source: std::io::Error) -> Error {
    Error { operation: "take a lease on", path: path.to_owned(), source }
}

pub(super) fn inotify() -> Result<OwnedFd> {
    let made = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC);
    with_context(made, "make a watch of", Path::new("inotify"))
}

/// Watches a directory; none if it does not exist. A directory already watched keeps its number.
pub(super) fn watch(inotify: &OwnedFd, directory: &Path) -> Result<Option<i32>> {
    let flags = WatchFlags::CLOSE_WRITE
        | WatchFlags::CREATE
        | WatchFlags::MOVED_TO
        | WatchFlags::MOVED_FROM
        | WatchFlags::EXCL_UNLINK
        | WatchFlags::ONLYDIR;
    match inotify::add_watch(inotify, directory, flags) {
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        added => with_context(added, "watch", directory).map(Some),
    }
}

pub(super) fn unwatch(inotify: &OwnedFd, watch: i32) {
    inotify::remove_watch(inotify, watch).ok(); // the kernel may have removed the watch
}

/// Reads all queued events.
pub(super) fn read(inotify: &OwnedFd) -> Result<Vec<KernelEvent>> {
    const BUFFER_BYTES: usize = 64 << 10;
    let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
    let mut reader = Reader::new(inotify, &mut buffer);
    let mut found = Vec::new();
    loop {
        match reader.next() {
            Ok(event) => {
                let name = event
                    .file_name()
                    .map_or(OsStr::new(""), |name| OsStr::from_bytes(name.to_bytes()));
                found.extend(meaning(event.wd(), event.events(), name));
            }
            Err(Errno::AGAIN) => return Ok(found),
            Err(Errno::INTR) => {}
            Err(error) => return with_context(Err(error), "read events of", Path::new("inotify")),
        }
    }
}

fn meaning(watch: i32, flags: ReadFlags, name: &OsStr) -> Option<KernelEvent> {
    let name = name.to_owned();
    let is_directory = flags.contains(ReadFlags::ISDIR);
    if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
        Some(KernelEvent::Lost)
    } else if flags.contains(ReadFlags::IGNORED) {
        Some(KernelEvent::Unwatched(watch))
    } else if flags.contains(ReadFlags::MOVED_FROM) {
        is_directory.then_some(KernelEvent::DirectoryGone(watch, name))
    } else if is_directory {
        Some(KernelEvent::Directory(watch, name))
    } else if flags.contains(ReadFlags::CLOSE_WRITE) {
        Some(KernelEvent::Closed(watch, name))
    } else if flags.contains(ReadFlags::MOVED_TO) {
        Some(KernelEvent::Arrived(watch, name))
    } else {
        None // a new file: it is empty and open
    }
}

pub(super) fn event() -> Result<OwnedFd> {
    let made = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC);
    with_context(made, "make", Path::new("eventfd"))
}

pub(super) fn wake(event: &OwnedFd) -> Result<()> {
    match rustix::io::write(event, &1_u64.to_ne_bytes()) {
        Ok(_) | Err(Errno::AGAIN) => Ok(()), // full: already signalled
        Err(error) => with_context(Err(error), "write to", Path::new("eventfd")),
    }
}

/// Waits for an event, for a request, or until this time.
pub(super) fn wait(inotify: &OwnedFd, request: &OwnedFd, until: Option<Instant>) -> Result<()> {
    let left = until.map(|until| until.saturating_duration_since(clock::now()));
    let left = left.and_then(|left| Timespec::try_from(left).ok());
    let mut both = [
        PollFd::from_borrowed_fd(inotify.as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(request.as_fd(), PollFlags::IN),
    ];
    match poll(&mut both, left.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return with_context(Err(error), "wait for", Path::new("inotify")),
    }
    let mut count = [0; 8];
    match rustix::io::read(request, &mut count) {
        Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(()),
        Err(error) => with_context(Err(error), "read", Path::new("eventfd")),
    }
}
