//! inotify(7), leases (fcntl(2)) and eventfd(2).

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
use crate::{Error, Result, clock, on};

/// What the kernel said, with the number of the watch on the directory.
pub(super) enum Raw {
    /// The queue was full: events are lost.
    Lost,
    /// The directory is not watched any more.
    Unwatched(i32),
    /// A directory was made, or moved here.
    Directory(i32, OsString),
    /// A directory was moved away.
    DirectoryGone(i32, OsString),
    /// Somebody who wrote has closed the file.
    Closed(i32, OsString),
    /// The file was moved here.
    Arrived(i32, OsString),
}

/// What a file is found to be.
pub(super) enum Look {
    /// Nobody has it open for writing, and nobody can until the lease is dropped.
    Closed(Lease),
    /// Somebody has.
    Open,
    /// It is not there, or no ordinary file.
    Gone,
    /// We get no lease here.
    Unleased(Status, Error),
    /// We cannot look, perhaps only now, for want of descriptors.
    Unknown(Error),
}

/// Who opens the file for writing waits until this is dropped.
pub(super) struct Lease {
    file: File,
    pub(super) status: Status,
}

impl Drop for Lease {
    fn drop(&mut self) {
        // It would be given back by the close that follows too.
        set(&self.file, libc::F_SETLEASE, libc::F_UNLCK).ok();
    }
}

/// Of fcntl(2), the same for all architectures of Linux.
const F_SETSIG: libc::c_int = 10;

fn set(file: &File, what: libc::c_int, value: libc::c_int) -> std::io::Result<()> {
    // SAFETY: these calls take an open descriptor, which `file` is, and a number.
    match unsafe { libc::fcntl(file.as_raw_fd(), what, value) } {
        -1 => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Is there a file that nobody has open for writing? As the event alone says where there are no leases.
pub fn is_closed(path: &Path) -> Result<Option<Status>> {
    match look(path) {
        Look::Closed(Lease { status, .. }) | Look::Unleased(status, _) => Ok(Some(status)),
        Look::Open | Look::Gone => Ok(None),
        Look::Unknown(error) => Err(error),
    }
}

pub(super) fn look(path: &Path) -> Look {
    // Neither does a fifo that has taken its place hold us up, nor do we follow a link.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        // What we may not read, we can look at; who wants it will be told.
        Err(Errno::ACCESS | Errno::PERM) => return without_lease(path, Errno::ACCESS.into()),
        // The last two: a socket or a device has its name.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO | Errno::NODEV) => {
            return Look::Gone;
        }
        Err(Errno::AGAIN) => return Look::Open, // a writer has a lease on it
        Err(error) => {
            return Look::Unknown(Error {
                operation: "look at",
                path: path.to_owned(),
                source: error.into(),
            });
        }
    };
    let status = match files::status_of(&file, path) {
        Ok(status) if status.kind == Kind::File => status,
        Ok(_) => return Look::Gone,
        Err(error) => return Look::Unknown(error),
    };
    // If a writer comes he waits, and we get a signal. That of old, SIGIO, would end us; this one is
    // ignored unless somebody wants it.
    let leased = set(&file, F_SETSIG, libc::SIGURG)
        .and_then(|()| set(&file, libc::F_SETLEASE, libc::F_RDLCK));
    match leased {
        Ok(()) => match files::status_of(&file, path) {
            Ok(status) => Look::Closed(Lease { file, status }),
            Err(error) => Look::Unknown(error),
        },
        Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => Look::Open,
        Err(error) => Look::Unleased(status, lease_error(path, error)),
    }
}

fn without_lease(path: &Path, error: std::io::Error) -> Look {
    match files::status_of_name(path) {
        Ok(status) if status.kind == Kind::File => Look::Unleased(status, lease_error(path, error)),
        Err(error) if !error.is_not_found() => Look::Unknown(error),
        Ok(_) | Err(_) => Look::Gone,
    }
}

fn lease_error(path: &Path, source: std::io::Error) -> Error {
    Error { operation: "take a lease on", path: path.to_owned(), source }
}

pub(super) fn inotify() -> Result<OwnedFd> {
    let made = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC);
    on(made, "make a watch of", Path::new("inotify"))
}

/// Watches a directory; none if it is not there any more. One that is watched already keeps its number.
pub(super) fn watch(inotify: &OwnedFd, directory: &Path) -> Result<Option<i32>> {
    let flags = WatchFlags::CLOSE_WRITE
        | WatchFlags::CREATE
        | WatchFlags::MOVED_TO
        | WatchFlags::MOVED_FROM
        | WatchFlags::EXCL_UNLINK
        | WatchFlags::ONLYDIR;
    match inotify::add_watch(inotify, directory, flags) {
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        added => on(added, "watch", directory).map(Some),
    }
}

pub(super) fn unwatch(inotify: &OwnedFd, watch: i32) {
    inotify::remove_watch(inotify, watch).ok(); // it went with its directory
}

/// All that is in the queue.
pub(super) fn read(inotify: &OwnedFd) -> Result<Vec<Raw>> {
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
            Err(error) => return on(Err(error), "read events of", Path::new("inotify")),
        }
    }
}

fn meaning(watch: i32, flags: ReadFlags, name: &OsStr) -> Option<Raw> {
    let name = name.to_owned();
    let is_directory = flags.contains(ReadFlags::ISDIR);
    if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
        Some(Raw::Lost)
    } else if flags.contains(ReadFlags::IGNORED) {
        Some(Raw::Unwatched(watch))
    } else if flags.contains(ReadFlags::MOVED_FROM) {
        is_directory.then_some(Raw::DirectoryGone(watch, name))
    } else if is_directory {
        Some(Raw::Directory(watch, name))
    } else if flags.contains(ReadFlags::CLOSE_WRITE) {
        Some(Raw::Closed(watch, name))
    } else if flags.contains(ReadFlags::MOVED_TO) {
        Some(Raw::Arrived(watch, name))
    } else {
        None // a file was made: it is empty yet, and open
    }
}

pub(super) fn event() -> Result<OwnedFd> {
    let made = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC);
    on(made, "make", Path::new("eventfd"))
}

pub(super) fn ring(event: &OwnedFd) -> Result<()> {
    match rustix::io::write(event, &1_u64.to_ne_bytes()) {
        Ok(_) | Err(Errno::AGAIN) => Ok(()), // full: it has been rung
        Err(error) => on(Err(error), "write to", Path::new("eventfd")),
    }
}

/// Waits for events, the bell, or that time.
pub(super) fn wait(inotify: &OwnedFd, bell: &OwnedFd, until: Option<Instant>) -> Result<()> {
    let left = until.map(|until| until.saturating_duration_since(clock::now()));
    let left = left.and_then(|left| Timespec::try_from(left).ok());
    let mut both = [
        PollFd::from_borrowed_fd(inotify.as_fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(bell.as_fd(), PollFlags::IN),
    ];
    match poll(&mut both, left.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return on(Err(error), "wait for", Path::new("inotify")),
    }
    let mut count = [0; 8];
    match rustix::io::read(bell, &mut count) {
        Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(()),
        Err(error) => on(Err(error), "read", Path::new("eventfd")),
    }
}
