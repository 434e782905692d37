//! Checks values against the formats in the table of rules.
//! Never checks access modes or paths of stages beyond an empty value: `access` and `paths` do.

use crate::problem::{Finding, Position};
use crate::rules::{Key, Support, Value, Word};
use crate::suggestion::with_suggestion;
use crate::token::Token;
use crate::{parse_size, paths};

/// The problems with a key's value, and the limits of its support. Does not check access modes.
/// `name` is the name of the key in messages.
pub(crate) fn check(name: &str, key: &Key, value: &Token) -> Vec<Finding> {
    if value.text.is_empty() {
        return vec![no_value(name, key, value.start)];
    }
    let label = format!("{name}=");
    let mut findings: Vec<_> = match key.value {
        Value::OuterPath => {
            paths::outer(value, &label, paths::IN_DIRECTIVES).err().into_iter().collect()
        }
        Value::Words(words) => one_of(&label, words, value).into_iter().collect(),
        Value::WordList(words) => {
            value.split_at_commas().iter().filter_map(|word| one_of(&label, words, word)).collect()
        }
        _ => value_error(key.value, &value.text)
            .map(|(what, example)| {
                let message = format!("{label}{} {what}", value.text);
                let hint = format!("write for example {label}{example}");
                Finding::error(value.start, message, hint)
            })
            .into_iter()
            .collect(),
    };
    if findings.is_empty() {
        findings.extend(Finding::of_support(key.support, value.start, &label));
    }
    findings
}

/// The problem of a missing value.
pub(crate) fn no_value(name: &str, key: &Key, position: Position) -> Finding {
    let example = match key.value {
        Value::Words(words) | Value::WordList(words) => alternatives(words),
        Value::StagePath => "/PATH or $DW_JOB_STRIPED/PATH".into(),
        Value::NnfPath => "/PATH or $DW_JOB_NAME/PATH".into(),
        Value::OuterPath => "/PATH".into(),
        Value::AccessModes => "striped".into(),
        value => value_error(value, "").map_or("TEXT".into(), |(_, example)| example.into()),
    };
    Finding::error(position, format!("{name}= has no value"), format!("write {name}={example}"))
}

/// The problem with a text, and a valid example.
pub(crate) fn value_error(value: Value, text: &str) -> Option<(String, &'static str)> {
    let size = |text: &str| parse_size(text).err().map(|e| format!("is no size: {e}"));
    let unless = |good: bool, what: &str| (!good).then(|| what.to_owned());
    let (fault, example) = match value {
        Value::Size => (size(text), "10GiB"),
        Value::SizeInGib if is_number(text) => (size(&format!("{text}GiB")), "10GiB"),
        Value::SizeInGib => (size(text), "10GiB"),
        Value::SizePair => {
            let fault = match text.split_once(':') {
                Some((first, second)) => size(first).or_else(|| size(second)),
                None => Some("is no pair of sizes".into()),
            };
            (fault, "1MiB:8MiB")
        }
        Value::Count => {
            let good = is_number(text) && text.parse::<u64>().is_ok_and(|n| n > 0);
            (unless(good, "is no whole number above zero"), "10")
        }
        Value::Switch => (unless(matches!(text, "yes" | "no"), "is not known"), "yes"),
        Value::Name => (name_error(text), "proj1"),
        Value::NnfId => (
            unless(is_nnf_id(text), "is not of the form [a-z][a-z0-9-]+")
                .or_else(|| length_error(text)),
            "proj1",
        ),
        Value::NnfSize => (
            unless(
                is_nnf_size(text),
                "is not digits with one of KiB, MiB, GiB, TiB, KB, MB, GB, TB",
            )
            .or_else(|| size(text)),
            "10GiB",
        ),
        Value::Words(_)
        | Value::WordList(_)
        | Value::AccessModes
        | Value::Text
        | Value::OuterPath
        | Value::StagePath
        | Value::NnfPath => return None,
    };
    Some((fault?, example))
}

fn one_of(label: &str, words: &[Word], value: &Token) -> Option<Finding> {
    let what = format!("{label}{}", value.text);
    match words.iter().find(|word| word.name == value.text) {
        Some(word) => Finding::of_support(word.support, value.start, &what),
        None => Some(Finding::error(
            value.start,
            format!("{what} is not known"),
            with_suggestion(
                &value.text,
                words.iter().map(|word| word.name),
                format!("write {label}{}", alternatives(words)),
            ),
        )),
    }
}

/// The supported words.
fn alternatives(words: &[Word]) -> String {
    let good = words.iter().filter(|word| word.support == Support::Yes);
    let names: Vec<_> = good.map(|word| word.name).collect();
    names.join(" or ")
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The maximum length of a persistent allocation's name and of NNF's IDs, in bytes. They become part of the names of
/// directories and of variables.
pub const NAME_BYTES_MAX: usize = 64;

/// The problem with the name of a persistent allocation, if any. The result continues a sentence
/// that begins with the name.
pub fn name_error(text: &str) -> Option<String> {
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    if !begins || !text.bytes().all(is_part) {
        let rule = "it begins with a letter and has letters, digits, \"_\", \"-\", \".\"";
        return Some(format!("is no name: {rule}"));
    }
    length_error(text)
}

fn length_error(text: &str) -> Option<String> {
    let length = text.len();
    (length > NAME_BYTES_MAX).then(|| {
        format!("is too long: it has {length} characters, at most {NAME_BYTES_MAX} can be")
    })
}

fn is_nnf_id(text: &str) -> bool {
    text.len() > 1
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

fn is_nnf_size(text: &str) -> bool {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    unit.len() < text.len()
        && matches!(unit, "KiB" | "KB" | "MiB" | "MB" | "GiB" | "GB" | "TiB" | "TB")
}
