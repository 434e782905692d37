//! How one scheduler writes its options, and what they say.

use std::time::Duration;

/// What an option says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    JobName,
    /// A name, with a job array behind it in brackets.
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
    /// Words among which `nvme` and `spectral` ask for the node's own storage.
    Features,
    /// The resource list of PBS, a language of its own.
    Resources,
}

/// Names of options, with their dashes, and what they say.
pub(crate) type Options = &'static [(&'static [&'static str], Meaning)];

/// How one scheduler writes its options.
pub(crate) struct Dialect {
    pub(crate) options: Options,
    /// An option and the value attached to it; the value is none if it is the next word.
    pub(crate) split: fn(&str) -> (&str, Option<&str>),
    /// A limit of time; zero is no limit.
    pub(crate) time: fn(&str) -> Option<Duration>,
    /// How a limit of time is written, for the user.
    pub(crate) time_form: &'static str,
    /// What a size without a unit is in.
    pub(crate) memory_unit_bytes: u64,
}

pub(crate) fn meaning(options: Options, name: &str) -> Option<Meaning> {
    let found = options.iter().find(|(names, _)| names.contains(&name));
    found.map(|(_, meaning)| *meaning)
}
