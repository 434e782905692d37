//! Lines over TCP between programs of several machines. A peer may be anybody: each line has a size, and each wait
//! an end. A connection can become the standard input and output of a program.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::net::SendFlags;

use crate::{Result, clock, threads, with_context};

/// Bytes read at a time.
const PORTION_BYTES: usize = 16 << 10;

/// Accepts connections at an address.
#[derive(Debug)]
pub struct Acceptor {
    listener: TcpListener,
    name: String,
}

/// A connection to another program.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    name: String,
}

/// Closes a connection that another thread uses.
#[derive(Debug)]
pub struct Closer(TcpStream);

impl Acceptor {
    /// Listens at this address only.
    pub fn bind(address: SocketAddr) -> Result<Self> {
        let name = address.to_string();
        let listener = with_context(TcpListener::bind(address), "listen at", Path::new(&name))?;
        Ok(Self { listener, name })
    }

    /// The address, with the port that the kernel chose if none was given.
    pub fn address(&self) -> Result<SocketAddr> {
        with_context(self.listener.local_addr(), "listen at", Path::new(&self.name))
    }

    /// Waits for the next connection.
    pub fn accept(&self) -> Result<Connection> {
        let accepted = loop {
            match self.listener.accept() {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The peer was faster.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                accepted => break accepted,
            }
        };
        let (stream, peer) = with_context(accepted, "accept at", Path::new(&self.name))?;
        Ok(Connection { stream, name: peer.to_string() })
    }
}

/// Connects to `host:port` within `time_max`.
///
/// # Errors
/// If the name is unknown, or no address of it accepts a connection in time.
pub fn connect(address: &str, time_max: Duration) -> Result<Connection> {
    let found = with_context(address.to_socket_addrs(), "find the address of", Path::new(address))?;
    let deadline = clock::now() + time_max;
    let mut connected = Err(io::Error::other("the name has no address"));
    for one in found {
        let left = deadline.saturating_duration_since(clock::now());
        if left.is_zero() {
            break;
        }
        connected = TcpStream::connect_timeout(&one, left);
        if connected.is_ok() {
            break;
        }
    }
    let stream = with_context(connected, "connect to", Path::new(address))?;
    Ok(Connection { stream, name: address.to_owned() })
}

impl Connection {
    /// Receives one line, without its end.
    ///
    /// # Errors
    /// If the peer closes the connection before the end of the line, the line is longer than `bytes_max`, or it is
    /// not complete after `time_max`.
    pub fn receive(&mut self, bytes_max: usize, time_max: Duration) -> Result<Vec<u8>> {
        let received = self.line(bytes_max, time_max);
        with_context(received, "receive from", Path::new(&self.name))
    }

    fn line(&mut self, bytes_max: usize, time_max: Duration) -> io::Result<Vec<u8>> {
        let deadline = clock::now() + time_max;
        let (mut line, mut portion) = (Vec::new(), [0; PORTION_BYTES]);
        loop {
            let left = deadline.saturating_duration_since(clock::now());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            self.stream.set_read_timeout(Some(left))?;
            let read = match self.stream.read(&mut portion) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Err(ErrorKind::TimedOut.into());
                }
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                read => &portion[..read?],
            };
            let end = read.iter().position(|byte| *byte == b'\n');
            line.extend_from_slice(&read[..end.unwrap_or(read.len())]);
            if line.len() > bytes_max {
                return Err(io::Error::other(format!("the line is longer than {bytes_max} bytes")));
            }
            if end.is_some() {
                return Ok(line);
            }
        }
    }

    /// Sends one line. A closed connection is an error, and causes no SIGPIPE.
    ///
    /// # Errors
    /// If the peer takes no byte for `time_max`, or has closed the connection.
    pub fn send(&mut self, line: &[u8], time_max: Duration) -> Result<()> {
        let sent = self.stream.set_write_timeout(Some(time_max)).and_then(|()| {
            let line = [line, b"\n"].concat();
            let mut left = line.as_slice();
            while !left.is_empty() {
                let sent = rustix::io::retry_on_intr(|| {
                    rustix::net::send(&self.stream, left, SendFlags::NOSIGNAL)
                })?;
                left = &left[sent..];
            }
            Ok(())
        });
        with_context(sent, "send to", Path::new(&self.name))
    }

    /// The standard input and output of a program. Waits have no end any more, and small messages are sent at once.
    ///
    /// # Errors
    /// If the connection cannot be copied.
    pub fn into_stdio(self) -> Result<(Stdio, Stdio)> {
        let copied = self.unlimited().and_then(|()| self.stream.try_clone());
        let copy = with_context(copied, "copy", Path::new(&self.name))?;
        Ok((OwnedFd::from(self.stream).into(), OwnedFd::from(copy).into()))
    }

    /// Lets waits have no end.
    fn unlimited(&self) -> io::Result<()> {
        self.stream.set_nodelay(true)?;
        self.stream.set_read_timeout(None)?;
        self.stream.set_write_timeout(None)
    }

    /// Sends what standard input brings, and prints what arrives, until the peer closes the connection. The end of
    /// standard input is the end of what is sent.
    ///
    /// # Errors
    /// If the connection is lost.
    pub fn relay(self) -> Result<()> {
        let began = self.unlimited().and_then(|()| self.stream.try_clone());
        let mut sending = with_context(began, "copy", Path::new(&self.name))?;
        threads::spawn(move || {
            io::copy(&mut io::stdin().lock(), &mut sending).ok(); // where it arrives, the end is noticed
            sending.shutdown(Shutdown::Write).ok();
        })?;
        let mut receiving = &self.stream;
        let mut portion = [0; PORTION_BYTES];
        let mut output = io::stdout().lock();
        loop {
            let read = match receiving.read(&mut portion) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Ok(0) => return Ok(()),
                read => with_context(read, "receive from", Path::new(&self.name))?,
            };
            let printed = output.write_all(&portion[..read]).and_then(|()| output.flush());
            with_context(printed, "print", Path::new("what arrived"))?;
        }
    }

    /// The address of the peer.
    pub fn peer(&self) -> &str {
        &self.name
    }

    /// What closes the connection from another thread.
    pub fn closer(&self) -> Result<Closer> {
        with_context(self.stream.try_clone(), "watch", Path::new(&self.name)).map(Closer)
    }
}

impl Closer {
    /// Closes the connection in both directions.
    pub fn close(&self) {
        self.0.shutdown(Shutdown::Both).ok(); // the peer may have closed it
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn pair() -> (Connection, Connection) {
        let here = Acceptor::bind("127.0.0.1:0".parse().expect("address")).expect("bind");
        let address = here.address().expect("address").to_string();
        let one = connect(&address, LONG).expect("connect");
        (one, here.accept().expect("accept"))
    }

    #[test]
    fn lines_pass_both_ways_and_have_a_largest_size() {
        let (mut one, mut other) = pair();
        one.send(b"question", LONG).expect("send");
        assert_eq!(other.receive(8, LONG).expect("line"), b"question");
        other.send(&[b'x'; 9], LONG).expect("send");
        let error = one.receive(8, LONG).expect_err("too long").to_string();
        assert!(error.ends_with("the line is longer than 8 bytes"), "{error}");
    }

    #[test]
    fn incomplete_silent_and_closed_peers_are_errors() {
        let (one, mut other) = pair();
        let short = Duration::from_millis(20);
        rustix::net::send(&one.stream, b"half", SendFlags::NOSIGNAL).expect("send");
        let error = other.receive(100, short).expect_err("no end");
        assert_eq!(error.source.kind(), ErrorKind::TimedOut);
        let closer = other.closer().expect("closer");
        let waiting = threads::spawn(move || other.receive(100, LONG)).expect("thread");
        closer.close();
        waiting.join().expect("thread").expect_err("closed");
    }
}
