//! How the job's processes ask how far the drain is, and wait for it.

use std::path::PathBuf;
use std::sync::Mutex;

use forebay_host::closes::Bell;
use forebay_host::door;
use serde::{Deserialize, Serialize};

use super::queue::DrainStatus;
use super::{Drain, Item, locked};
use crate::{Error, RUN_VARIABLE};
use forebay_record::Recorded;

/// Name of the socket in the job's directory.
pub(super) const DOOR: &str = "drain";

/// What is asked.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Question {
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

/// Asks the `forebay run` whose job we are part of.
///
/// # Errors
/// If there is none, it drains nothing, or it refuses.
pub fn ask(question: &Question) -> Result<DrainStatus, Error> {
    let runs = std::env::var_os(RUN_VARIABLE).unwrap_or_default();
    let runs = runs.to_string_lossy();
    let Some(run) = runs.rsplit(':').next().filter(|run| !run.is_empty()) else {
        return Err(Error::NoDrain {
            message: "this is no job of forebay run",
            hint: "call it from the job's script",
        });
    };
    let question = serde_json::to_string(question).map_err(not_understood)?;
    let answered = door::ask(&PathBuf::from(run).join(DOOR), &question);
    let answer = answered.map_err(|error| match error.is_not_found() {
        true => Error::NoDrain {
            message: "nothing of this job is drained while it runs",
            hint: "start it with forebay run --drain 'PATTERN', or --spectral",
        },
        false => error.into(),
    })?;
    let answer: Answer = serde_json::from_str(&answer).map_err(not_understood)?;
    match answer.error {
        Some(message) => Err(Error::Drain {
            message,
            hint: "see docs/drain.md",
        }),
        None => Ok(answer.status),
    }
}

fn not_understood(error: serde_json::Error) -> Error {
    Error::Drain {
        message: format!("the answer of forebay run is not understood: {error}"),
        hint: "use the same forebay in the job and around it",
    }
}

impl Drain<'_> {
    pub(super) fn answer(
        &self,
        question: &str,
        bell: &Bell,
        recorded: &Mutex<&mut Recorded>,
    ) -> String {
        let done = match serde_json::from_str(question) {
            Ok(Question::Status) => Ok(()),
            Ok(Question::Wait) => {
                let number = self.catch_up(bell);
                drop(self.wait_while(|queue| !queue.is_done_before(number) && !queue.over));
                Ok(())
            }
            Ok(Question::Spectral { persist, pfs }) => {
                let announced = self.announced(&persist, &pfs, recorded);
                announced.map_err(|error| error.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        let status = locked(&self.queue).status();
        let error = done.err();
        serde_json::to_string(&Answer { status, error }).unwrap_or_default()
    }

    /// What is to be drained is written down first, so that it is not forgotten when we are killed.
    fn announced(
        &self,
        persist: &str,
        pfs: &str,
        recorded: &Mutex<&mut Recorded>,
    ) -> Result<(), Error> {
        let mut rules = locked(&self.rules);
        let Some((number, rule)) = rules.add_spectral(persist.as_ref(), pfs.as_ref())? else {
            return Ok(());
        };
        let elsewhere = rules.elsewhere();
        locked(recorded).update(|record| record.drain_to = elsewhere)?;
        drop(rules);
        let (closed, unseen) = rule.closed_by_now();
        for error in unseen {
            locked(&self.queue).unseen(&error.path, &error);
        }
        for closed in closed {
            let item = Item {
                rule: number,
                closed,
            };
            self.add(item);
        }
        self.changed.notify_all();
        Ok(())
    }
}
