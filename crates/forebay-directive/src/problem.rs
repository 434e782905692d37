//! What is wrong with a text, how severe it is, and where.

use serde::{Deserialize, Serialize};

use crate::rules::Support;

/// Which text a [`Position`] is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Origin {
    /// What was given as `--bb`.
    Option,
    /// The script.
    Script,
    /// A list of files, which the caller names.
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
    /// Without its column.
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

/// Something that stops the job from being started or, as a warning, that the user should know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct Problem {
    /// Its position.
    pub place: Position,
    /// What is wrong, with the offending text.
    pub message: String,
    /// What to write instead.
    pub hint: String,
}

impl Problem {
    pub(crate) fn new(
        place: Position,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { place, message: message.into(), hint: hint.into() }
    }
}

/// How a [`Problem`] weighs. What is wrong is said first; what is right but not carried out is
/// refused only when nothing is wrong.
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
        place: Position,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { weight: Weight::Wrong, problem: Problem::new(place, message, hint) }
    }

    /// What the table says of something that is written rightly: `what` names it.
    pub(crate) fn of_support(support: Support, place: Position, what: &str) -> Option<Self> {
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
        let problem = Problem::new(place, message, hint);
        Some(Self { weight, problem })
    }
}
