//! What one look at the machine found, and how a program is asked within its time.

use std::process::Command;
use std::time::Duration;

use forebay_host::process::{Captured, run_captured};
use serde::Serialize;

/// What one program may take to answer. A scheduler whose controller is gone takes for ever.
pub const PROBE_TIME_MS_MAX: u64 = 2_000;

/// How well it is with one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// As it should be, or not needed.
    Ok,
    /// There, but something about it costs.
    Warn,
    /// Not there.
    Missing,
}

impl State {
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Missing => "missing",
        }
    }

    /// Colour on a terminal (SGR); the word alone says all.
    pub fn colour(self) -> u8 {
        match self {
            Self::Ok => 32,
            Self::Warn => 33,
            Self::Missing => 31,
        }
    }
}

/// What was found of one thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub id: &'static str,
    pub state: State,
    pub found: String,
    /// What it means for Forebay.
    pub consequence: String,
    /// What to do about it; `None` where all is well.
    pub remedy: Option<String>,
}

/// A finding without its id.
pub struct Diagnosis {
    pub state: State,
    pub found: String,
    pub consequence: String,
    pub remedy: Option<String>,
}

impl Diagnosis {
    pub fn ok(found: impl Into<String>, consequence: impl Into<String>) -> Self {
        Self {
            state: State::Ok,
            found: found.into(),
            consequence: consequence.into(),
            remedy: None,
        }
    }

    pub fn warn(found: impl Into<String>, consequence: impl Into<String>, remedy: &str) -> Self {
        Self { state: State::Warn, remedy: Some(remedy.to_owned()), ..Self::ok(found, consequence) }
    }

    pub fn missing(found: impl Into<String>, consequence: impl Into<String>, remedy: &str) -> Self {
        Self { state: State::Missing, ..Self::warn(found, consequence, remedy) }
    }
}

/// Runs a program within its time; `Err` says in words why there is no answer.
pub fn run_probe(command: Command) -> Result<Captured, String> {
    match run_captured(command, Duration::from_millis(PROBE_TIME_MS_MAX), &|| true) {
        Ok(Some(answer)) => Ok(answer),
        Ok(None) => Err(format!("no answer within {} s", PROBE_TIME_MS_MAX / 1000)),
        Err(error) => Err(error.to_string()),
    }
}
