//! Problems in a text, with their severity and position.

use serde::{Deserialize, Serialize};

use crate::rules::Support;

/// The text of a [`Position`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Origin {
    /// The text of `--bb`.
    Option,
    /// The script.
    Script,
    /// A list of files, named by the caller.
    List,
}

/// A position in a text. Line and column count from 1; the column counts bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    /// The text.
    pub origin: Origin,
    /// Line number in the text.
    pub line: usize,
    /// Column of the first byte.
    pub column: usize,
}

impl Position {
    /// The position without its column.
    pub fn on_line(&self) -> String {
        let text = match self.origin {
            Origin::Option => "--bb, ",
            Origin::Script | Origin::List => "",
        };
        format!("{text}line {}", self.line)
    }
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        if self.origin == Origin::Option {
            f.write_str("--bb, ")?;
        }
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// An error that prevents the start of the job, or a warning for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{position}: {message}")]
pub struct Problem {
    /// Its position.
    pub position: Position,
    /// What is wrong, including the text concerned.
    pub message: String,
    /// The correct form.
    pub hint: String,
}

impl Problem {
    pub(crate) fn new(
        position: Position,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { position, message: message.into(), hint: hint.into() }
    }
}

/// The severity of a [`Problem`]. Valid but unsupported directives are refused only if no directive
/// is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    Wrong,
    Refused,
    Warning,
}

/// A problem found by a check.
#[derive(Debug, Clone)]
pub(crate) struct Finding {
    pub(crate) weight: Weight,
    pub(crate) problem: Problem,
}

impl Finding {
    pub(crate) fn error(
        position: Position,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { weight: Weight::Wrong, problem: Problem::new(position, message, hint) }
    }

    /// The finding for a valid item named `what`, by its support.
    pub(crate) fn of_support(support: Support, position: Position, what: &str) -> Option<Self> {
        let (weight, message, hint) = match support {
            Support::Yes => return None,
            Support::NoEffect(why) => {
                let message = format!("{what} has no effect here: {why}");
                (Weight::Warning, message, "it may stay for other machines")
            }
            Support::Refused { why, instead } => {
                (Weight::Refused, format!("{what} is refused: {why}"), instead)
            }
        };
        let problem = Problem::new(position, message, hint);
        Some(Self { weight, problem })
    }
}
