//! `#SBATCH` (sbatch(1)).

use std::time::Duration;

use super::dialect::{Dialect, Meaning as M};
use super::quantity::mixed_radix;

pub(super) static DIALECT: Dialect = Dialect {
    options: &[
        (&["-J", "--job-name"], M::JobName),
        (&["-n", "--ntasks"], M::Tasks),
        (&["-N", "--nodes"], M::Nodes),
        (&["--ntasks-per-node"], M::TasksPerNode),
        (&["-c", "--cpus-per-task"], M::CpusPerTask),
        (&["-D", "--chdir"], M::Directory),
        (&["-p", "--partition"], M::Partition),
        (&["-A", "--account"], M::Account),
        (&["-o", "--output"], M::Output),
        (&["-e", "--error"], M::Error),
        (&["-t", "--time"], M::TimeLimit),
        (&["--mem"], M::Memory),
        (&["--bb"], M::Bb),
        (&["--bbf"], M::Bbf),
        (&["-C", "--constraint"], M::Features),
    ],
    split: split_option,
    time,
    time_form: "such as 30, 1:30:00 or 1-12",
    memory_unit_bytes: 1 << 20,
};

/// `--name=value` or `-nVALUE` in two.
pub(super) fn split_option(word: &str) -> (&str, Option<&str>) {
    if let Some((name, value)) = word.split_once('=').filter(|_| word.starts_with("--")) {
        return (name, Some(value));
    }
    match word.char_indices().nth(2) {
        Some((at, _)) if word.starts_with('-') && !word.starts_with("--") => {
            (&word[..at], Some(&word[at..]))
        }
        _ => (word, None),
    }
}

fn time(text: &str) -> Option<Duration> {
    if ["UNLIMITED", "INFINITE"]
        .iter()
        .any(|word| text.eq_ignore_ascii_case(word))
    {
        return Some(Duration::ZERO);
    }
    let seconds = match text.split_once('-') {
        None => mixed_radix(text, &[&[60], &[60, 1], &[3600, 60, 1]])?,
        Some((days, rest)) => mixed_radix(rest, &[&[3600], &[3600, 60], &[3600, 60, 1]])?
            .checked_add(mixed_radix(days, &[&[24 * 3600]])?)?,
    };
    Some(Duration::from_secs(seconds))
}
