//! A check.

use crate::trial::{Trial, Verdict};

/// Where a check looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// What POSIX promises to the processes of one node.
    OneNode,
    /// What one node sees of another's work.
    AcrossNodes,
}

/// A check.
#[derive(Clone, Copy)]
pub struct Check {
    /// Its name in the output and for `--only`.
    pub name: &'static str,
    /// What it proves.
    pub proves: &'static str,
    /// It is repeated so many times less often, since it works on many names or much data.
    pub(crate) cost: u64,
    pub(crate) body: fn(&mut Trial<'_>) -> Verdict,
}

/// A check that is repeated as often as asked for.
pub(crate) const fn check(
    name: &'static str,
    proves: &'static str,
    body: fn(&mut Trial<'_>) -> Verdict,
) -> Check {
    Check { name, proves, cost: 1, body }
}

impl Check {
    /// The check, repeated `cost` times less often.
    pub(crate) const fn costs(self, cost: u64) -> Self {
        Self { cost, ..self }
    }

    /// How often it is repeated.
    pub fn repetitions(&self, asked: u64) -> u64 {
        (asked / self.cost).max(1)
    }
}
