//! Callbacks: the program that started Forebay calls a function for each version, instead of a shell command.
//!
//! Each call is one line of JSON, `{"call":0,"rule":0,"path":[bytes],"version":1}`. The program answers with
//! another line, `{"call":0,"error":null,"traceback":null}`, in any order.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;

use parking_lot::{Condvar, Mutex};
use serde::{Deserialize, Serialize};

use crate::versions::Version;

const GONE: &str = "the program that was to be called has ended";

#[derive(Serialize)]
struct Call<'a> {
    call: u64,
    rule: usize,
    path: &'a [u8],
    version: u64,
}

#[derive(Debug, Deserialize)]
struct Answer {
    call: u64,
    error: Option<String>,
    traceback: Option<String>,
}

#[derive(Debug, Default)]
struct PendingCalls {
    next: u64,
    answers: HashMap<u64, Answer>,
    is_stopped: bool,
    is_gone: bool,
}

/// Calls that the program has not answered yet.
pub struct Callbacks {
    send_line: fn(&str),
    pending: Mutex<PendingCalls>,
    changed: Condvar,
}

impl std::fmt::Debug for Callbacks {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.pending.fmt(formatter)
    }
}

impl Callbacks {
    /// `send_line` sends a line to the program.
    #[must_use]
    pub fn new(send_line: fn(&str)) -> Self {
        Self { send_line, pending: Mutex::default(), changed: Condvar::new() }
    }

    /// Receives a line from the program.
    ///
    /// # Errors
    /// Describes what is wrong with the line.
    pub fn answer(&self, line: &str) -> Result<(), String> {
        let answer: Answer =
            serde_json::from_str(line).map_err(|error| format!("{error} in the answer {line}"))?;
        self.pending.lock().answers.insert(answer.call, answer);
        self.changed.notify_all();
        Ok(())
    }

    /// Begins no call any more, even if the answer to the last one follows at once.
    pub fn stop(&self) {
        self.pending.lock().is_stopped = true;
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.pending.lock().is_stopped
    }

    /// Fails all calls, because the program has ended.
    pub fn disconnect(&self) {
        self.pending.lock().is_gone = true;
        self.changed.notify_all();
    }

    /// Calls the function and waits for the answer. The error is the reason and the traceback.
    pub(super) fn call(&self, version: &Version) -> Result<(), (String, Option<String>)> {
        let mut pending = self.pending.lock();
        let call = pending.next;
        pending.next += 1;
        drop(pending);
        let line = serde_json::to_string(&Call {
            call,
            rule: version.rule,
            path: version.closed.path.as_os_str().as_bytes(),
            version: version.closed.version,
        });
        (self.send_line)(&line.map_err(|error| (error.to_string(), None))?);
        let mut pending = self.pending.lock();
        loop {
            if let Some(answer) = pending.answers.remove(&call) {
                return answer.error.map_or(Ok(()), |error| Err((error, answer.traceback)));
            }
            if pending.is_gone {
                return Err((GONE.to_owned(), None));
            }
            self.changed.wait(&mut pending);
        }
    }
}
