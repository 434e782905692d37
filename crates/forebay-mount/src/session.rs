//! Threads that receive requests of the kernel and answer them. As many run as requests wait for servers.
//! Never more than 4096: if all wait, further requests stay in the kernel, also interrupts.
//! A panic ends one request with EIO, and not the mount.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_host::fuse::FuseDevice;
use forebay_host::process::EventSender;
use forebay_host::threads;

use crate::error::Errno;
use crate::protocol::{BATCH_FORGET, FORGET, Request};
use crate::reply::Reply;
use crate::server::{Server, WRITE_BYTES_MAX};

/// Threads that wait for a request at the same time, at most.
const IDLE_MAX: usize = 8;
/// All threads, at most. Each waits for one answer of a server.
const THREADS_MAX: usize = 4096;
/// What a request has besides the data that it writes.
const REQUEST_BYTES_MAX: usize = 4096;

/// The threads of one mount.
pub(crate) struct Session {
    server: Server,
    first: Arc<FuseDevice>,
    threads: AtomicUsize,
    idle: AtomicUsize,
    /// Told when the last thread ends.
    ended: EventSender,
}

impl Session {
    pub(crate) fn new(server: Server, device: FuseDevice, ended: EventSender) -> Arc<Self> {
        let (threads, idle) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Arc::new(Self { server, first: Arc::new(device), threads, idle, ended })
    }

    /// Starts the first thread.
    ///
    /// # Errors
    /// If the machine allows no further thread.
    pub(crate) fn start(self: &Arc<Self>) -> forebay_host::Result<()> {
        self.threads.fetch_add(1, Ordering::SeqCst);
        let session = Arc::clone(self);
        threads::spawn(move || session.run(Arc::clone(&session.first))).map(drop)
    }

    /// Whether all threads ended, because the kernel has no mount any more.
    pub(crate) fn has_ended(&self) -> bool {
        self.threads.load(Ordering::SeqCst) == 0
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    /// One more thread, if the machine allows it; without it requests wait for those that run.
    fn add_thread(self: &Arc<Self>) {
        if self.threads.fetch_add(1, Ordering::SeqCst) >= THREADS_MAX {
            self.threads.fetch_sub(1, Ordering::SeqCst);
            return;
        }
        let session = Arc::clone(self);
        let started = threads::spawn(move || {
            let device = session.first.another().map_or_else(|_| session.first.clone(), Arc::new);
            session.run(device);
        });
        if started.is_err() {
            self.threads.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Serves requests until the mount ends, or enough other threads wait for one.
    fn run(self: &Arc<Self>, device: Arc<FuseDevice>) {
        let mut bytes = vec![0; REQUEST_BYTES_MAX + WRITE_BYTES_MAX];
        let mut buffer = Vec::new();
        loop {
            if self.idle.fetch_add(1, Ordering::SeqCst) >= IDLE_MAX {
                self.idle.fetch_sub(1, Ordering::SeqCst);
                break;
            }
            let received = device.receive(&mut bytes);
            let was_last = self.idle.fetch_sub(1, Ordering::SeqCst) == 1;
            let length = match received {
                Ok(Some(length)) => length,
                Ok(None) => break,
                Err(error) => {
                    eprintln!("{error}");
                    break;
                }
            };
            let Some(request) = Request::parse(&bytes[..length]) else {
                eprintln!("a request of {length} bytes is malformed");
                continue;
            };
            let is_brief = matches!(request.opcode, FORGET | BATCH_FORGET);
            if was_last && !is_brief {
                self.add_thread();
            }
            let reply = Reply { device: Arc::clone(&device), unique: request.unique };
            let served = threads::caught(|| self.server.serve(request, &reply, &mut buffer));
            reply.send(&served.unwrap_or(Err(Errno(libc::EIO))), &buffer);
        }
        if self.threads.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.ended.wake();
        }
    }
}
