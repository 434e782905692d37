//! `#BSUB` (bsub(1) of IBM Spectrum LSF 10.1). Its options are words behind one dash.

use std::time::Duration;

use super::dialect::{Dialect, Meaning as M, meaning};
use super::quantity::mixed_radix;

pub(super) static DIALECT: Dialect = Dialect {
    options: &[
        (&["-J"], M::JobNameAndArray),
        (&["-n"], M::Tasks),
        (&["-nnodes"], M::Nodes),
        (&["-cwd"], M::Directory),
        (&["-q"], M::Partition),
        (&["-P"], M::Account),
        (&["-o", "-oo"], M::Output),
        (&["-e", "-eo"], M::Error),
        (&["-W"], M::TimeLimit),
        (&["-alloc_flags"], M::Features),
    ],
    split: split_option,
    time,
    time_form: "[hours:]minutes",
    memory_unit_bytes: 1 << 10,
};

/// `-W10` and `-n16` in two; no other value is attached to its option, since `-oo` and `-nnodes`
/// are options of their own.
fn split_option(word: &str) -> (&str, Option<&str>) {
    let begins_with_digit = |value: &&str| value.starts_with(|c: char| c.is_ascii_digit());
    match word.split_at_checked(2) {
        Some((name, value))
            if begins_with_digit(&value) && meaning(DIALECT.options, name).is_some() =>
        {
            (name, Some(value))
        }
        _ => (word, None),
    }
}

/// The name of a host, whose speed the time would be measured by, may stand behind it.
fn time(text: &str) -> Option<Duration> {
    let time = text.split('/').next()?;
    mixed_radix(time, &[&[60], &[3600, 60]]).map(Duration::from_secs)
}
