//! What variables are made from; true for the one node that there is.

use std::ffi::{OsStr, OsString};

/// Names, and the value of each of them.
pub(super) type Names<'a> = (&'static [&'static str], &'a OsStr);

/// What variables are made from.
pub(super) struct Facts<'a> {
    pub(super) id: &'a OsStr,
    pub(super) name: String,
    pub(super) tasks: String,
    pub(super) processors: String,
    pub(super) host: String,
    pub(super) submitted_in: &'a OsStr,
    pub(super) cpus_per_task: Option<String>,
    pub(super) partition: Option<&'a str>,
    pub(super) account: Option<&'a str>,
    /// A file with a line for each task: the name of its node.
    pub(super) node_file: OsString,
}
