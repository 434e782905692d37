//! Unix sockets with names in the file system, for processes of one machine.
//! Only accepted connections limit the waits: `send` and `receive` after `connect` may wait for ever.
//! Never removes the name of a socket.

use std::io::{self, ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType};

use crate::{Result, with_context};

/// The kernel's limit for a socket name, including the final zero (unix(7)).
const NAME_BYTES_MAX: usize = 108;

/// A socket that accepts connections.
#[derive(Debug)]
pub struct Listener {
    listener: UnixListener,
    path: PathBuf,
}

/// A connection. Each message starts with its length in bytes.
#[derive(Debug)]
pub struct Channel {
    stream: UnixStream,
    path: PathBuf,
}

impl Listener {
    /// Creates a socket with this name.
    pub fn bind(path: &Path) -> Result<Self> {
        let listener =
            with_context(by_name(path, |name| UnixListener::bind(name)), "listen at", path)?;
        let path = path.to_owned();
        Ok(Self { listener, path })
    }

    /// Waits for the next connection; none after [`Listener::close`]. Reads from the connection
    /// fail after `patience` without data, and each write after `patience` without a reader.
    pub fn accept(&self, patience: Duration) -> Result<Option<Channel>> {
        let stream = match self.listener.accept() {
            Err(error) if error.kind() == ErrorKind::InvalidInput => return Ok(None),
            accepted => with_context(accepted, "accept at", &self.path)?.0,
        };
        let limited = stream.set_read_timeout(Some(patience));
        let limited = limited.and_then(|()| stream.set_write_timeout(Some(patience)));
        with_context(limited, "listen at", &self.path)?;
        let path = self.path.clone();
        Ok(Some(Channel { stream, path }))
    }

    /// Stops accepting. A thread that waits in [`Listener::accept`] gets none.
    pub fn close(&self) -> Result<()> {
        let closed = rustix::net::shutdown(&self.listener, Shutdown::Both);
        with_context(closed, "close", &self.path)
    }
}

/// Connects to a listener.
pub fn connect(path: &Path) -> Result<Channel> {
    let stream = by_name(path, |name| {
        let address = SocketAddrUnix::new(name)?;
        let kind = (AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC);
        let mut socket = rustix::net::socket_with(kind.0, kind.1, kind.2, None)?;
        if socket.as_raw_fd() <= libc::STDERR_FILENO {
            // A program that closed its standard streams may still write to them.
            socket = rustix::io::fcntl_dupfd_cloexec(&socket, libc::STDERR_FILENO + 1)?;
        }
        rustix::io::retry_on_intr(|| rustix::net::connect(&socket, &address))?;
        Ok(UnixStream::from(socket))
    });
    let path = path.to_owned();
    with_context(stream, "speak to", &path).map(|stream| Channel { stream, path })
}

impl Channel {
    /// Sends a message. A closed connection is an error, and causes no SIGPIPE.
    ///
    /// # Errors
    /// As `send(2)`; if the length does not fit into 32 bits.
    pub fn send(&mut self, message: &[u8]) -> Result<()> {
        let length = u32::try_from(message.len()).map_err(io::Error::other);
        let length = with_context(length, "send to", &self.path)?;
        let mut left = &[&length.to_le_bytes(), message].concat()[..];
        while !left.is_empty() {
            let sent = rustix::io::retry_on_intr(|| {
                rustix::net::send(&self.stream, left, SendFlags::NOSIGNAL)
            });
            left = &left[with_context(sent, "send to", &self.path)?..];
        }
        Ok(())
    }

    /// Receives the next message.
    ///
    /// # Errors
    /// As `read(2)`; if the message is incomplete or longer than `bytes_max`.
    pub fn receive(&mut self, bytes_max: u32) -> Result<Vec<u8>> {
        let mut length = [0; 4];
        with_context(self.stream.read_exact(&mut length), "receive from", &self.path)?;
        let length = u32::from_le_bytes(length);
        if length > bytes_max {
            return with_context(
                Err(io::Error::other("it is too long")),
                "receive from",
                &self.path,
            );
        }
        let mut message = vec![0; length as usize];
        with_context(self.stream.read_exact(&mut message), "receive from", &self.path)?;
        Ok(message)
    }

    /// Has the other side closed the connection?
    pub fn is_closed(&self) -> bool {
        let mut polled = [PollFd::new(&self.stream, PollFlags::RDHUP)];
        rustix::event::poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    /// Adds the socket's name to an error.
    pub fn named<T>(&self, result: io::Result<T>, operation: &'static str) -> Result<T> {
        with_context(result, operation, &self.path)
    }
}

/// Calls with a name within the kernel's limit: a long name goes through an open directory.
fn by_name<T>(path: &Path, call: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let short = path.as_os_str().as_bytes().len() < NAME_BYTES_MAX;
    let (Some(parent), Some(name), false) = (path.parent(), path.file_name(), short) else {
        return call(path);
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(parent, flags, Mode::empty())?;
    let open = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string());
    call(&open.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_is_answered_and_closed_listener_reported_with_long_names() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let long = scratch.path().join("x".repeat(120));
        std::fs::create_dir(&long).expect("mkdir");
        for directory in [scratch.path(), &long] {
            let name = directory.join("socket");
            let listener = Listener::bind(&name).expect("bind");
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let mut channel = connect(&name).expect("connect");
                    channel.send(b"how far?").expect("send");
                    assert_eq!(channel.receive(100).expect("answer"), b"done");
                });
                const TIMEOUT: Duration = Duration::from_secs(60);
                let mut channel = listener.accept(TIMEOUT).expect("accept").expect("one");
                assert_eq!(channel.receive(100).expect("question"), b"how far?");
                channel.send(b"done").expect("answer");
                let waiting = scope.spawn(|| listener.accept(TIMEOUT).expect("closed").is_none());
                listener.close().expect("close");
                assert!(waiting.join().expect("thread"));
            });
        }
    }

    #[test]
    fn peer_that_reads_nothing_ends_the_answer() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let name = scratch.path().join("socket");
        let listener = Listener::bind(&name).expect("bind");
        let _silent = connect(&name).expect("connect");
        let accepted = listener.accept(Duration::from_millis(50)).expect("accept");
        accepted.expect("one").send(&vec![0; 64 << 20]).expect_err("nobody reads");
    }
}
