//! The questions of programs to their job and its answers, each over a connection of its own: a length (32 bits, little
//! endian) and a postcard value. Assumes one build of Forebay on both sides. A program keeps nothing between two calls,
//! so it may fork, exec, close all its files or be killed at any time.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use forebay_host::socket::{self, Channel};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Names the socket, for what is started by the job.
pub const SOCKET_VARIABLE: &str = "FOREBAY_REQUESTS";
/// Its name, next to the namespaces.
pub const SOCKET_NAME: &str = "requests.socket";

/// A path as bytes: names need not be UTF-8.
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

/// What the paths of a question are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shape {
    /// One file.
    File,
    /// A directory with all that is in it.
    Directory,
    /// Some files, together.
    List,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Question {
    /// Copy into the burst buffer. Of a list, `inner` is the directory that gets the files.
    StageIn {
        /// File, directory or list.
        shape: Shape,
        /// In the burst buffer.
        inner: Name,
        /// On the file system; more than one for a list only.
        outer: Vec<Name>,
    },
    /// Copy out of the burst buffer. Of a list, `outer` is the directory that gets the files.
    StageOut {
        /// File, directory or list.
        shape: Shape,
        /// When the job has ended, and not now.
        at_job_end: bool,
        /// In the burst buffer; more than one for a list only.
        inner: Vec<Name>,
        /// On the file system.
        outer: Name,
    },
    /// About what was asked before.
    About {
        /// What to do.
        action: Action,
        /// File, directory or list.
        shape: Shape,
        /// In the burst buffer; more than one for a list only.
        inner: Vec<Name>,
    },
    /// The files below a directory of the burst buffer that could not be staged.
    Failures(Name),
    /// How many files may be staged at the same time.
    Concurrency(Name, u32),
    /// What was stored and moved, as JSON.
    Accounting(Name),
    /// How a file or directory is striped.
    Layout(Name),
}

/// What to do with what was asked before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// Say how far it is.
    Query,
    /// Answer when nothing of it is in progress any more.
    Wait,
    /// End it, and leave no part of a file.
    Terminate,
    /// Drop what was to be done when the job ends.
    Revoke,
    /// Do that now.
    Activate,
}

/// Files in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Arrived.
    pub complete: u32,
    /// Being copied, or waiting for it.
    pub pending: u32,
    /// To be copied when the job ends.
    pub deferred: u32,
    /// Not arrived, and not tried again by itself while the job runs.
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

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// It is queued, or done.
    Done,
    /// It was not: the number of an error, as in errno(3).
    Refused(i32),
    /// To [`Action::Query`].
    Counts(Counts),
    /// To [`Question::Failures`]: file, and the number of its error.
    Failures(Vec<(Name, i32)>),
    /// To [`Question::Accounting`].
    Accounting(String),
    /// To [`Question::Layout`].
    Layout {
        /// Bytes of one stripe.
        stripe_bytes: u64,
        /// Is it an empty file or a directory, whose layout may be set?
        may_be_set: bool,
    },
}

/// Bytes of the longest message: some hundred thousand paths.
const MESSAGE_BYTES_MAX: u32 = 64 << 20;

/// Sends a question to a socket, and waits for the answer.
///
/// # Errors
/// If there is no listener, or it ended before its answer.
pub fn query(socket: &Path, question: &Question) -> forebay_host::Result<Answer> {
    let mut channel = socket::connect(socket)?;
    send(&mut channel, question)?;
    receive(&mut channel)
}

/// Receives a question.
///
/// # Errors
/// If it is incomplete or damaged.
pub fn receive_question(channel: &mut Channel) -> forebay_host::Result<Question> {
    receive(channel)
}

/// Answers it.
///
/// # Errors
/// If whoever asked is gone.
pub fn answer(channel: &mut Channel, answer: &Answer) -> forebay_host::Result<()> {
    send(channel, answer)
}

fn send(channel: &mut Channel, value: &impl Serialize) -> forebay_host::Result<()> {
    let bytes = postcard::to_stdvec(value).map_err(io::Error::other);
    let bytes = channel.named(bytes, "put into words for")?;
    channel.send(&bytes)
}

fn receive<T: DeserializeOwned>(channel: &mut Channel) -> forebay_host::Result<T> {
    let bytes = channel.receive(MESSAGE_BYTES_MAX)?;
    let value = postcard::from_bytes(&bytes).map_err(io::Error::other);
    channel.named(value, "understand what came from")
}
