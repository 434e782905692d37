//! How the job's processes ask how far the drain is, and wait for it: JSON over a socket in the job's directory.
//!
//! Assumes that `forebay run` listens. Never changes anything itself.

use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay_host::clock;
use forebay_host::files;
use forebay_host::socket::{Channel, Listener, connect};
use serde::{Deserialize, Serialize};

use super::queue::DrainStatus;
use crate::Error;
use forebay_record::RUN_VARIABLE;

/// Name of the socket in the job's directory.
const SOCKET_NAME: &str = "drain";
/// Whoever connects has its request ready.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// For want of descriptors nobody can connect for a while.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
const REQUEST_BYTES_MAX: u32 = 64 << 10;
/// An answer names each file that failed.
const ANSWER_BYTES_MAX: u32 = u32::MAX;

/// What is asked.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ControlRequest {
    /// How far is it?
    Status,
    /// The same, when everything that is closed by now was tried.
    Wait,
    /// Files below the first directory are to go to the second one, Spectral's way.
    Spectral {
        /// `PERSIST_DIR`.
        persist: String,
        /// `PFS_DIR`.
        pfs: String,
    },
}

#[derive(Serialize, Deserialize)]
struct Answer {
    status: DrainStatus,
    error: Option<String>,
}

/// Asks the `forebay run` whose job we are part of, and waits for the answer as long as it takes.
///
/// # Errors
/// If there is none, it drains nothing, or it refuses.
pub fn query_drain(request: &ControlRequest) -> Result<DrainStatus, Error> {
    let runs = std::env::var_os(RUN_VARIABLE).unwrap_or_default();
    let runs = runs.to_string_lossy();
    let Some(run) = runs.rsplit(':').next().filter(|run| !run.is_empty()) else {
        return Err(Error::NoDrain {
            message: "this is no job of forebay run",
            hint: "call it from the job's script",
        });
    };
    let request = serde_json::to_vec(request).map_err(not_understood)?;
    let answer = exchange(&Path::new(run).join(SOCKET_NAME), &request);
    let answer = answer.map_err(|error| match error.is_not_found() {
        true => Error::NoDrain {
            message: "nothing of this job is drained while it runs",
            hint: "start it with forebay run --drain 'PATTERN', or --spectral",
        },
        false => error.into(),
    })?;
    let answer: Answer = serde_json::from_slice(&answer).map_err(not_understood)?;
    match answer.error {
        Some(message) => Err(Error::Request { message, hint: "see docs/drain.md" }),
        None => Ok(answer.status),
    }
}

fn exchange(socket: &Path, request: &[u8]) -> forebay_host::Result<Vec<u8>> {
    let mut channel = connect(socket)?;
    channel.send(request)?;
    channel.receive(ANSWER_BYTES_MAX)
}

fn not_understood(error: serde_json::Error) -> Error {
    Error::Request {
        message: format!("the answer of forebay run is not understood: {error}"),
        hint: "use the same forebay in the job and around it",
    }
}

/// The side of `forebay run`. The socket is removed when it is dropped.
pub(super) struct Control {
    listener: Listener,
    path: PathBuf,
}

impl Control {
    /// Listens in this directory.
    ///
    /// # Errors
    /// As `bind(2)`.
    pub(super) fn listen(directory: &Path) -> forebay_host::Result<Self> {
        let path = directory.join(SOCKET_NAME);
        let listener = Listener::bind(&path)?;
        Ok(Self { listener, path })
    }

    /// Answers each request in a thread of its own, until [`Control::close`]: `handle` carries it out and returns
    /// the status after it, and what went wrong.
    pub(super) fn serve(&self, handle: &Handle) {
        std::thread::scope(|scope| {
            loop {
                match self.listener.accept(REQUEST_TIMEOUT) {
                    Ok(None) => return,
                    // A process that was killed meanwhile receives nothing.
                    Ok(Some(channel)) => drop(scope.spawn(move || answer(channel, handle).ok())),
                    Err(_) => clock::sleep(ACCEPT_PAUSE),
                }
            }
        });
    }

    /// Lets [`Control::serve`] return.
    pub(super) fn close(&self) {
        self.listener.close().ok(); // it can fail only if it is closed
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        files::remove_file(&self.path).ok(); // it goes with its directory too
    }
}

pub(super) type Handle<'a> = dyn Fn(ControlRequest) -> (DrainStatus, Option<String>) + Sync + 'a;

fn answer(mut channel: Channel, handle: &Handle) -> forebay_host::Result<()> {
    let request = channel.receive(REQUEST_BYTES_MAX)?;
    let request =
        channel.named(serde_json::from_slice(&request).map_err(Into::into), "read from")?;
    let (status, error) = handle(request);
    let answer = serde_json::to_vec(&Answer { status, error }).map_err(Into::into);
    let answer = channel.named(answer, "answer")?;
    channel.send(&answer)
}
