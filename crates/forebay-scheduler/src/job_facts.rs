//! What variables are made from; true for the one node that there is.

use std::ffi::{OsStr, OsString};

/// Names, and the value of each of them.
pub(crate) type Names<'a> = (&'static [&'static str], &'a OsStr);

/// What variables are made from.
pub(crate) struct Facts<'a> {
    pub(crate) id: &'a OsStr,
    pub(crate) name: String,
    pub(crate) tasks: String,
    pub(crate) processors: String,
    pub(crate) host: String,
    pub(crate) submitted_in: &'a OsStr,
    pub(crate) cpus_per_task: Option<String>,
    pub(crate) partition: Option<&'a str>,
    pub(crate) account: Option<&'a str>,
    /// A file with a line for each task: the name of its node.
    pub(crate) node_file: OsString,
}
