//! Parses the access modes of an allocation.
//! Assumes a value that is not empty. Never decides which modes a directive may have: `request` and `persistent` do.

use crate::problem::Finding;
use crate::rules::{GROUP, Key, MODES, MODIFIERS, Value, Word, key_names};
use crate::suggestion::with_suggestion;
use crate::token::Token;
use crate::{AccessMode, values};

/// What a value says of access.
#[derive(Debug, Default)]
pub(crate) struct Access {
    pub(crate) modes: Vec<AccessMode>,
    /// The group of a persistent allocation.
    pub(crate) group: Option<String>,
    pub(crate) findings: Vec<Finding>,
}

/// Parses the access modes in a value.
pub(crate) fn read(value: &Token) -> Access {
    let mut access = Access::default();
    let mut named: Vec<&str> = Vec::new();
    for part in value.split_at_commas() {
        let word = match read_mode(&part, &mut access) {
            Ok(word) => word,
            Err(finding) => {
                access.findings.push(finding);
                continue;
            }
        };
        if named.contains(&word.name) {
            let message = format!("access_mode names {} twice", word.name);
            access.findings.push(Finding::error(part.start, message, "name each mode once"));
        } else {
            named.push(word.name);
        }
        match word.name {
            "striped" => access.modes.push(AccessMode::Striped),
            "private" => access.modes.push(AccessMode::Private),
            _ => {}
        }
    }
    access
}

/// Parses one mode with its modifiers.
fn read_mode(part: &Token, access: &mut Access) -> Result<&'static Word, Finding> {
    let (name, inside) = match part.text.split_once('(') {
        None => (part.text.as_str(), None),
        Some((name, rest)) if rest.ends_with(')') => {
            let inside = part.part(name.len() + 1..part.text.len() - 1);
            (name, Some(inside))
        }
        Some(_) => {
            let message = format!("\"{}\" is no access mode with modifiers", part.text);
            let hint =
                "write for example access_mode=striped(MFS=10GiB,client_cache), without blanks";
            return Err(Finding::error(part.start, message, hint));
        }
    };
    let Some(word) = MODES.iter().find(|word| word.name == name) else {
        return Err(Finding::error(
            part.start,
            format!("unknown access_mode \"{name}\""),
            with_suggestion(
                name,
                MODES.iter().map(|word| word.name),
                "write access_mode=striped, access_mode=private or access_mode=striped,private",
            ),
        ));
    };
    if let Some(inside) = inside {
        read_modifiers(&inside, access);
    }
    let what = format!("access_mode={name}");
    access.findings.extend(Finding::of_support(word.support, part.start, &what));
    Ok(word)
}

fn read_modifiers(inside: &Token, access: &mut Access) {
    let findings = &mut access.findings;
    let mut written = Vec::new();
    for part in inside.split_at_commas() {
        let (name, value) = match part.pair() {
            Some((name, value)) => (name, Some(value)),
            None => (part.text.as_str(), None),
        };
        let Some(key) = MODIFIERS.iter().find(|key| key.is_written(name)) else {
            findings.push(Finding::error(
                part.start,
                format!("unknown modifier \"{name}\""),
                with_suggestion(
                    name,
                    MODIFIERS.iter().flat_map(Key::names),
                    format!("known are {}", key_names(MODIFIERS)),
                ),
            ));
            continue;
        };
        if written.contains(&key.name) {
            let message = format!("{name} is given twice");
            findings.push(Finding::error(part.start, message, "keep one of them"));
        } else {
            written.push(key.name);
        }
        if key.name == GROUP {
            access.group = value.as_ref().map(|value| value.text.clone());
        }
        match value {
            Some(value) => findings.extend(values::check(name, key, &value)),
            None if matches!(key.value, Value::Switch) => {}
            None => findings.push(values::no_value(name, key, part.start)),
        }
    }
}
