//! What a plan found at the targets, unchanged.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::model::version::Stamp;

/// Where what is there was compared.
#[derive(Debug, Default)]
pub(crate) struct AlreadyPresent {
    /// A directory on each file system, by the number of that.
    pub(crate) file_systems: BTreeMap<u64, PathBuf>,
    /// How each directory was before it was looked into, by its number.
    pub(crate) directories: BTreeMap<i64, Stamp>,
}
