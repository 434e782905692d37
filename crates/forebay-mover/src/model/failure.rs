//! A failed file, directory or transfer, with the reason and the remedy; groups failures by cause for messages.
//! Assumes that reasons with the same cause differ only in paths and digits. Never prints.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use forebay_host::messages::FAILURES_SHOWN;

/// The errno of a failure whose destination was changed by others, and is kept.
pub const ALREADY_EXISTS: i32 = libc::EEXIST;

/// One thing that could not be moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The source, or the destination if the destination caused the failure.
    pub path: PathBuf,
    /// Why it failed.
    pub reason: String,
    /// What the user can do about it, if known.
    pub remedy: Option<String>,
    /// The error number, see errno(3), if there is one.
    pub errno: Option<i32>,
}

/// Failures with one cause: the first of them, and how many there are.
struct Cause<'a> {
    /// The first failure.
    first: &'a Failure,
    /// How many failures have this cause.
    failures: usize,
}

/// One line for each cause, at most [`FAILURES_SHOWN`], then the number of the other failures.
pub fn failure_lines(failures: &[Failure], shown: impl Fn(&Path) -> String) -> Vec<String> {
    let causes = by_cause(failures);
    let line = |cause: &Cause| {
        let (path, reason) = (shown(&cause.first.path), &cause.first.reason);
        match cause.failures - 1 {
            0 => format!("{path}: {reason}"),
            more => format!("{path}: {reason} (and {more} more for the same reason)"),
        }
    };
    let mut lines: Vec<_> = causes.iter().take(FAILURES_SHOWN).map(line).collect();
    let more: usize = causes.iter().skip(FAILURES_SHOWN).map(|cause| cause.failures).sum();
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines
}

/// Groups failures whose reasons differ in paths and numbers only, in order of their first ones.
fn by_cause(failures: &[Failure]) -> Vec<Cause<'_>> {
    let mut places = HashMap::new();
    let mut causes: Vec<Cause> = Vec::new();
    for failure in failures {
        // Each file that is kept is named.
        let kept = (failure.errno == Some(ALREADY_EXISTS)).then_some(&failure.path);
        let key = (failure.errno, shape(failure), kept);
        let place = *places.entry(key).or_insert(causes.len());
        match causes.get_mut(place) {
            Some(cause) => cause.failures += 1,
            None => causes.push(Cause { first: failure, failures: 1 }),
        }
    }
    causes
}

/// The reason without the names of the file and its directories, and without numbers.
fn shape(failure: &Failure) -> String {
    let mut reason = failure.reason.clone();
    let name = failure.path.file_name().map(|name| name.to_string_lossy().into_owned());
    if let Some(name) = name.filter(|name| !name.is_empty()) {
        reason = reason.replace(&name, "");
    }
    let is_path = |word: &&str| word.contains('/');
    let words = reason.split_whitespace().filter(|word| !is_path(word));
    words.collect::<Vec<_>>().join(" ").replace(|letter: char| letter.is_ascii_digit(), "")
}

impl Failure {
    /// A failure without remedy or error number.
    pub fn new(path: PathBuf, reason: String) -> Self {
        Self { path, reason, remedy: None, errno: None }
    }
}
