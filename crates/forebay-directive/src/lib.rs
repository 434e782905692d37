//! Reads the burst-buffer directives of a job script.
//!
//! Pure text: no file is opened and no environment is read. The caller gives the script's text
//! and the job's [`Symbols`]; it gets a [`Request`], or every [`Problem`] that was found, each with
//! line, column and remedy. The grammar is DataWarp's as Slurm reads it: see
//! `docs/directives.md`.

mod access;
mod args;
mod lines;
mod request;
mod rules;
mod size;

pub use access::AccessMode;
pub use lines::Symbols;
pub use request::{JobDw, Request, Stage, StageKind, parse};
pub use rules::{COMMANDS, Command, Key, Support, Value};
pub use size::{SizeError, parse_size};

/// Where something stands in the script. Both count from 1; the column counts bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Line number in the script.
    pub line: usize,
    /// Column of the first byte.
    pub column: usize,
}

/// Something in the script that stops the job from being started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {}, column {}: {message}", place.line, place.column)]
pub struct Problem {
    /// Where it stands.
    pub place: Place,
    /// What is wrong, with the offending text.
    pub message: String,
    /// What to write instead.
    pub hint: String,
}

impl Problem {
    pub(crate) fn new(place: Place, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            place,
            message: message.into(),
            hint: hint.into(),
        }
    }
}
