//! The checks: what each proves, and how.

pub(crate) mod across;
pub(crate) mod one_node;

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
const fn check(
    name: &'static str,
    proves: &'static str,
    body: fn(&mut Trial<'_>) -> Verdict,
) -> Check {
    Check { name, proves, cost: 1, body }
}

impl Check {
    /// The check, repeated `cost` times less often.
    const fn costs(self, cost: u64) -> Self {
        Self { cost, ..self }
    }

    /// How often it is repeated.
    pub fn repetitions(&self, asked: u64) -> u64 {
        (asked / self.cost).max(1)
    }
}

/// All checks of a scope.
pub fn checks(scope: Scope) -> impl Iterator<Item = &'static Check> {
    let groups = match scope {
        Scope::OneNode => one_node::GROUPS,
        Scope::AcrossNodes => across::GROUPS,
    };
    groups.iter().copied().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_sentences_end() {
        let all: Vec<_> = checks(Scope::OneNode).chain(checks(Scope::AcrossNodes)).collect();
        let names: std::collections::BTreeSet<_> = all.iter().map(|check| check.name).collect();
        assert_eq!(names.len(), all.len());
        for check in all {
            assert!(!check.proves.ends_with('.'), "{}", check.name);
            assert!(check.repetitions(20) >= 1 && check.repetitions(1000) <= 1000);
        }
    }
}
