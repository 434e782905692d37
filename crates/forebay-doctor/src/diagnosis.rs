//! Results of checks, and programs run with a time limit.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use forebay_host::process::{Captured, command, run_captured};
use schemars::JsonSchema;
use serde::Serialize;

/// The time limit of a program. Scheduler commands hang if the controller is gone.
pub const PROBE_TIME_MS_MAX: u64 = 2_000;

/// The state of a checked item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Good, or not needed.
    Ok,
    /// Usable with a disadvantage.
    Warn,
    /// Not available.
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

    /// The colour on a terminal (SGR). The word alone is sufficient.
    pub fn colour(self) -> u8 {
        match self {
            Self::Ok => 32,
            Self::Warn => 33,
            Self::Missing => 31,
        }
    }
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// What was examined.
    pub id: &'static str,
    /// Whether jobs can use it.
    pub state: State,
    /// What Forebay found.
    pub found: String,
    /// The consequence for Forebay.
    pub consequence: String,
    /// The remedy; `None` if there is no problem.
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

/// Runs a program with one argument, as it will be run. Returns its path, or what is wrong with it.
pub fn run_helper(path: &Path, argument: &str) -> Result<String, String> {
    let shown = path.display();
    let mut helper = command(path);
    helper.arg(argument);
    match run_probe(helper) {
        Ok(answer) if answer.success => Ok(shown.to_string()),
        Ok(_) => Err(format!("{shown} {argument} fails")),
        Err(error) => Err(format!("{shown}: {error}")),
    }
}

/// Runs a program with a time limit. `Err` explains why there is no answer.
pub fn run_probe(command: Command) -> Result<Captured, String> {
    match run_captured(command, Duration::from_millis(PROBE_TIME_MS_MAX), &|| true) {
        Ok(Some(answer)) => Ok(answer),
        Ok(None) => Err(format!("no answer within {} s", PROBE_TIME_MS_MAX / 1000)),
        Err(error) => Err(error.to_string()),
    }
}
