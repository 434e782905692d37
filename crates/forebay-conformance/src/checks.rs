//! The checks: what each proves, and how.

pub(crate) mod across;
pub(crate) mod one_node;

use crate::check::{Check, Scope};

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
