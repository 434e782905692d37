//! What the checks found.
//! A check that is not supported counts as good. One that has no answer, lost its worker or was not run does not.

use std::fmt;

use serde::Serialize;

use crate::check::Scope;

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Outcome {
    /// Every repetition found what the check proves.
    Kept,
    /// At least one did not.
    Broken {
        /// How many.
        broken: u64,
        /// What the first of them found.
        reason: String,
    },
    /// The file system does not offer it.
    NotSupported {
        /// The errno that says so.
        errno: String,
    },
    /// A worker did not answer within the limit. It was ended.
    NoAnswer {
        /// The limit.
        operation_s_max: String,
        /// The operation and the node.
        reason: String,
    },
    /// A worker ended, could not be started, or was not understood.
    Lost {
        /// Why.
        reason: String,
    },
    /// Too many checks before this one had no answer.
    NotRun,
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kept => write!(formatter, "kept"),
            Self::Broken { broken, .. } => write!(formatter, "broken: {broken}"),
            Self::NotSupported { errno } => write!(formatter, "not supported: {errno}"),
            Self::NoAnswer { operation_s_max, .. } => {
                write!(formatter, "no answer within {operation_s_max} s")
            }
            Self::Lost { .. } => write!(formatter, "worker lost"),
            Self::NotRun => write!(formatter, "not run"),
        }
    }
}

/// A check and what it found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckResult {
    /// The check.
    pub name: &'static str,
    /// What it proves.
    pub proves: &'static str,
    /// Where it looks.
    pub scope: Scope,
    /// How often it was repeated; fewer than asked for if it had no answer or is not supported.
    pub repetitions: u64,
    /// What it found.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// How long it took.
    pub wall_s: f64,
}

impl CheckResult {
    /// What the first failed repetition found, or which operation had no answer.
    pub fn reason(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Broken { reason, .. }
            | Outcome::NoAnswer { reason, .. }
            | Outcome::Lost { reason } => Some(reason),
            _ => None,
        }
    }

    /// Whether the file system does what it should, or says that it does not offer it.
    pub fn is_good(&self) -> bool {
        matches!(self.outcome, Outcome::Kept | Outcome::NotSupported { .. })
    }
}

impl fmt::Display for CheckResult {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let outcome = match &self.outcome {
            Outcome::Broken { .. } => format!("{} of {}", self.outcome, self.repetitions),
            other => other.to_string(),
        };
        write!(formatter, "{outcome:<28} {}: {}", self.name, self.proves)?;
        self.reason().map_or(Ok(()), |reason| write!(formatter, "\n{:29}{reason}", ""))
    }
}

/// What a worker says of its node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeFacts {
    /// How messages name it.
    pub name: String,
    /// Its host name.
    pub host: String,
    /// The version of its `forebay`.
    pub version: String,
}

/// All results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The directory that was tested.
    pub directory: String,
    /// The nodes.
    pub nodes: Vec<NodeFacts>,
    /// Each check.
    pub checks: Vec<CheckResult>,
    /// The directory that could not be removed.
    pub left: Option<String>,
    /// How long all took.
    pub wall_s: f64,
}

impl Report {
    /// Whether each check is kept or not supported.
    pub fn is_good(&self) -> bool {
        self.checks.iter().all(CheckResult::is_good)
    }

    /// One line with the counts.
    pub fn summary(&self) -> String {
        let count = |is: fn(&Outcome) -> bool| {
            self.checks.iter().filter(|check| is(&check.outcome)).count()
        };
        let counts = [
            (count(|outcome| *outcome == Outcome::Kept), "kept"),
            (count(|outcome| matches!(outcome, Outcome::Broken { .. })), "broken"),
            (count(|outcome| matches!(outcome, Outcome::NotSupported { .. })), "not supported"),
            (count(|outcome| matches!(outcome, Outcome::NoAnswer { .. })), "without answer"),
            (count(|outcome| matches!(outcome, Outcome::Lost { .. })), "with a lost worker"),
            (count(|outcome| *outcome == Outcome::NotRun), "not run"),
        ];
        let parts = counts.iter().enumerate().filter(|(at, (count, _))| *at == 0 || *count > 0);
        let parts: Vec<_> = parts.map(|(_, (count, what))| format!("{count} {what}")).collect();
        format!("{}; {} nodes, {:.1} s", parts.join(", "), self.nodes.len(), self.wall_s)
    }
}
