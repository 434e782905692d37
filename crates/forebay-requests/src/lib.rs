//! Requests of programs to their job and the answers. Each uses a separate connection: a length (32
//! bits, little endian) and a postcard value. Assumes the same build of Forebay on both sides. A program
//! keeps no state between calls, so it may fork, exec, close all its files or be killed at any time.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use forebay_host::socket::{self, Channel};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The environment variable with the path of the socket.
pub const SOCKET_VARIABLE: &str = "FOREBAY_REQUESTS";
/// The name of the socket, next to the namespaces.
pub const SOCKET_NAME: &str = "requests.socket";

/// A path as bytes, because names need not be UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Name(Vec<u8>);

impl From<&Path> for Name {
    fn from(path: &Path) -> Self {
        Self(path.as_os_str().as_bytes().to_vec())
    }
}

impl From<Name> for PathBuf {
    fn from(name: Name) -> Self {
        OsString::from_vec(name.0).into()
    }
}

/// The kind of a request's paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shape {
    /// One file.
    File,
    /// A directory with its contents.
    Directory,
    /// A list of files.
    List,
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Question {
    /// Copy into the burst buffer. For a list, `inner` is the target directory.
    StageIn {
        /// File, directory or list.
        shape: Shape,
        /// The path in the burst buffer.
        inner: Name,
        /// The paths on the file system; several only for a list.
        outer: Vec<Name>,
    },
    /// Copy out of the burst buffer. For a list, `outer` is the target directory.
    StageOut {
        /// File, directory or list.
        shape: Shape,
        /// Copy at the end of the job instead of now.
        at_job_end: bool,
        /// The paths in the burst buffer; several only for a list.
        inner: Vec<Name>,
        /// The path on the file system.
        outer: Name,
    },
    /// An action on earlier requests.
    About {
        /// The action.
        action: Action,
        /// File, directory or list.
        shape: Shape,
        /// The paths in the burst buffer; several only for a list.
        inner: Vec<Name>,
    },
    /// List files below a directory of the burst buffer that could not be staged.
    Failures(Name),
    /// Set how many files may be staged at the same time.
    Concurrency(Name, u32),
    /// Report storage and transfers, as JSON.
    Accounting(Name),
    /// Report how a file or directory is striped.
    Layout(Name),
}

/// An action on earlier requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// Return the counts.
    Query,
    /// Answer when no part is in progress.
    Wait,
    /// End the request and leave no partial file.
    Terminate,
    /// Drop the request to copy at the end of the job.
    Revoke,
    /// Copy now instead of at the end of the job.
    Activate,
}

/// Files in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Copied.
    pub complete: u32,
    /// Being copied or queued.
    pub pending: u32,
    /// To be copied at the end of the job.
    pub deferred: u32,
    /// Failed, and not retried automatically while the job runs.
    pub failed: u32,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.complete += other.complete;
        self.pending += other.pending;
        self.deferred += other.deferred;
        self.failed += other.failed;
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// The request is queued or done.
    Done,
    /// The request was refused: the errno, as in errno(3).
    Refused(i32),
    /// Answers [`Action::Query`].
    Counts(Counts),
    /// Answers [`Question::Failures`]: file and errno.
    Failures(Vec<(Name, i32)>),
    /// Answers [`Question::Accounting`].
    Accounting(String),
    /// Answers [`Question::Layout`].
    Layout {
        /// Bytes of one stripe.
        stripe_bytes: u64,
        /// Is it an empty file or a directory, so that the layout can be set?
        may_be_set: bool,
    },
}

/// The maximum size of a message, enough for some hundred thousand paths.
const MESSAGE_BYTES_MAX: u32 = 64 << 20;

/// Sends a request to a socket and waits for the answer.
///
/// # Errors
/// If there is no listener, or it ends before it answers; `ArgumentListTooLong` if the request is too large.
pub fn query(socket: &Path, question: &Question) -> forebay_host::Result<Answer> {
    let mut channel = socket::connect(socket)?;
    send(&mut channel, question)?;
    receive(&mut channel)
}

/// Receives a request.
///
/// # Errors
/// If the request is incomplete or damaged.
pub fn receive_question(channel: &mut Channel) -> forebay_host::Result<Question> {
    receive(channel)
}

/// Sends an answer.
///
/// # Errors
/// If the program has ended.
pub fn answer(channel: &mut Channel, answer: &Answer) -> forebay_host::Result<()> {
    send(channel, answer)
}

fn send(channel: &mut Channel, value: &impl Serialize) -> forebay_host::Result<()> {
    let bytes = postcard::to_stdvec(value).map_err(io::Error::other);
    let bytes = channel.named(bytes, "put into words for")?;
    if bytes.len() > MESSAGE_BYTES_MAX as usize {
        return channel.named(Err(io::ErrorKind::ArgumentListTooLong.into()), "send to");
    }
    channel.send(&bytes)
}

fn receive<T: DeserializeOwned>(channel: &mut Channel) -> forebay_host::Result<T> {
    let bytes = channel.receive(MESSAGE_BYTES_MAX)?;
    let value = postcard::from_bytes(&bytes).map_err(io::Error::other);
    channel.named(value, "understand what came from")
}
