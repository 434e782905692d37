//! Versions that are handed to the program that started us, instead of to a command of the shell.
//!
//! Each is one line of JSON, `{"call":0,"rule":0,"path":[bytes],"version":1}`; the program answers with another
//! one when it is through, `{"call":0,"error":null,"traceback":null}`, in any order.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::queue::Item;

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
struct Made {
    next: u64,
    answers: HashMap<u64, Answer>,
    is_gone: bool,
}

/// Calls that the program has in hand.
pub struct Calls {
    hand_out: fn(&str),
    made: Mutex<Made>,
    changed: Condvar,
}

impl std::fmt::Debug for Calls {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.made.fmt(formatter)
    }
}

impl Calls {
    /// `hand_out` brings the program a line.
    #[must_use]
    pub fn new(hand_out: fn(&str)) -> Self {
        Self {
            hand_out,
            made: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// A line that the program said.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn answer(&self, line: &str) -> Result<(), String> {
        let answer: Answer =
            serde_json::from_str(line).map_err(|error| format!("{error} in the answer {line}"))?;
        self.locked().answers.insert(answer.call, answer);
        self.changed.notify_all();
        Ok(())
    }

    /// The program is gone, and answers no more.
    pub fn gone(&self) {
        self.locked().is_gone = true;
        self.changed.notify_all();
    }

    /// Hands a version out, and waits for the answer: why it failed, and the traceback.
    pub(super) fn call(&self, item: &Item) -> Result<(), (String, Option<String>)> {
        let mut made = self.locked();
        let call = made.next;
        made.next += 1;
        drop(made);
        let line = serde_json::to_string(&Call {
            call,
            rule: item.rule,
            path: item.path.as_os_str().as_bytes(),
            version: item.version,
        });
        (self.hand_out)(&line.map_err(|error| (error.to_string(), None))?);
        let mut made = self.locked();
        loop {
            if let Some(answer) = made.answers.remove(&call) {
                return answer
                    .error
                    .map_or(Ok(()), |error| Err((error, answer.traceback)));
            }
            if made.is_gone {
                return Err((GONE.to_owned(), None));
            }
            let waited = self.changed.wait(made);
            made = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn locked(&self) -> MutexGuard<'_, Made> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
