//! The directories of records of I/O and their names.

use std::path::Path;

use forebay_host::files;

/// Where records of I/O are, below a state directory (docs/profiles.md).
pub const PROFILES: &str = "profiles";

/// Ids of the records in a directory, oldest first. What is not named as a record is none.
pub(crate) fn ids(profiles: &Path) -> Vec<u128> {
    let names = files::names_in(profiles).unwrap_or_default();
    let id = |name: &std::ffi::OsString| name.to_str()?.parse().ok();
    let mut ids: Vec<u128> = names.iter().filter_map(id).collect();
    ids.sort_unstable();
    ids
}
