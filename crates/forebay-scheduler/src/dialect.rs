//! The option syntax of a scheduler.

use std::time::Duration;

/// The meaning of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    JobName,
    /// A name, optionally followed by a job array in brackets.
    JobNameAndArray,
    Tasks,
    Nodes,
    TasksPerNode,
    CpusPerTask,
    Directory,
    Partition,
    Account,
    Output,
    Error,
    TimeLimit,
    Memory,
    Bb,
    Bbf,
    /// Words. `nvme` and `spectral` request the node's own storage.
    Features,
    /// The resource list of PBS, which has its own syntax.
    Resources,
}

/// Names of options with their dashes, and their meaning.
pub(crate) type Options = &'static [(&'static [&'static str], Meaning)];

/// The option syntax of a scheduler.
pub(crate) struct Dialect {
    pub(crate) options: Options,
    /// Splits a word into option and attached value; none if the value is the next word.
    pub(crate) split: fn(&str) -> (&str, Option<&str>),
    /// Parses a time limit. Zero means no limit.
    pub(crate) time: fn(&str) -> Option<Duration>,
    /// The format of a time limit, for messages.
    pub(crate) time_form: &'static str,
    /// The unit of sizes written without one.
    pub(crate) memory_unit_bytes: u64,
}

pub(crate) fn meaning(options: Options, name: &str) -> Option<Meaning> {
    let found = options.iter().find(|(names, _)| names.contains(&name));
    found.map(|(_, meaning)| *meaning)
}
