//! Processes of the job query the drain or wait for it: JSON over a socket in the job directory.
//!
//! Assumes that `forebay run` listens. Never changes anything itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use forebay_host::socket::{Channel, Listener, connect};
use forebay_host::threads::{self, Slots};
use forebay_host::{clock, files};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::queue::DrainStatus;
use crate::Error;
use forebay_record::RUN_VARIABLE;

/// Name of the socket in the job's directory.
const SOCKET_NAME: &str = "drain";
/// A client sends its request within this time.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause after a failed accept, for example without free descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
/// Requests that are answered at the same time: more calls of the job than this cannot wait.
const ANSWERS_MAX: usize = 256;
const REQUEST_BYTES_MAX: u32 = 64 << 10;
/// An answer has one entry for each failed file.
const ANSWER_BYTES_MAX: u32 = u32::MAX;

/// A request of a job process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ControlRequest {
    /// Returns the status.
    Status,
    /// Returns the status after all files closed so far were tried.
    Wait,
    /// Copies files below the first directory to the second one, for Spectral.
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

/// Sends a request to the `forebay run` of this job and waits for the answer, without a time limit.
///
/// # Errors
/// If there is no such `forebay run`, it drains nothing, or it refuses.
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
        Some(message) => Err(Error::Request { message, hint: "see docs/how-to/drain.md" }),
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

/// The socket of `forebay run`. Drop removes it.
pub(super) struct Control {
    listener: Listener,
    path: PathBuf,
}

impl Control {
    /// Creates the socket in this directory.
    ///
    /// # Errors
    /// As `bind(2)`.
    pub(super) fn listen(directory: &Path) -> forebay_host::Result<Self> {
        let path = directory.join(SOCKET_NAME);
        let listener = Listener::bind(&path)?;
        Ok(Self { listener, path })
    }

    /// Answers requests, each in a separate thread, until [`Control::close`]. Without a further thread it answers
    /// itself, but does not wait. `handle` handles the request and returns the status and the error.
    pub(super) fn serve(&self, handle: &Handle) {
        let slots = Slots::new(ANSWERS_MAX);
        std::thread::scope(|scope| {
            loop {
                let channel = match self.listener.accept(REQUEST_TIMEOUT) {
                    Ok(None) => return,
                    Ok(Some(channel)) => Arc::new(Mutex::new(Some(channel))),
                    Err(_) => {
                        clock::sleep(ACCEPT_PAUSE);
                        continue;
                    }
                };
                let started = slots.take().map(|slot| {
                    let channel = Arc::clone(&channel);
                    threads::spawn_scoped(scope, move || {
                        let _slot = slot;
                        let channel = channel.lock().take();
                        threads::caught(|| channel.map(|channel| answer(channel, handle, true)));
                    })
                });
                if !matches!(started, Some(Ok(_))) {
                    // The answer fails if the client has ended.
                    channel.lock().take().map(|channel| answer(channel, handle, false));
                }
            }
        });
    }

    /// Lets [`Control::serve`] return.
    pub(super) fn close(&self) {
        self.listener.close().ok(); // it fails only if it is closed already
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        files::remove_file(&self.path).ok(); // otherwise it is removed with its directory
    }
}

pub(super) type Handle<'a> = dyn Fn(ControlRequest) -> (DrainStatus, Option<String>) + Sync + 'a;

fn answer(mut channel: Channel, handle: &Handle, may_wait: bool) -> forebay_host::Result<()> {
    let request = channel.receive(REQUEST_BYTES_MAX)?;
    let request =
        channel.named(serde_json::from_slice(&request).map_err(Into::into), "read from")?;
    let (status, error) = match request {
        ControlRequest::Wait if !may_wait => {
            let (status, _) = handle(ControlRequest::Status);
            (status, Some("no thread is left that could wait: try again".to_owned()))
        }
        request => handle(request),
    };
    let answer = serde_json::to_vec(&Answer { status, error }).map_err(Into::into);
    let answer = channel.named(answer, "answer")?;
    channel.send(&answer)
}
