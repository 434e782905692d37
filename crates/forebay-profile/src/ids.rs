//! The directories of records of I/O, and their names.

use std::path::Path;

use forebay_host::files;

/// The directory of records of I/O in a state directory (docs/explanation/profiles.md).
pub const PROFILES: &str = "profiles";

/// IDs of the records in a directory, oldest first. Other names are ignored.
pub(crate) fn ids(profiles: &Path) -> Vec<u128> {
    let names = files::names_in(profiles).unwrap_or_default();
    let id = |name: &std::ffi::OsString| name.to_str()?.parse().ok();
    let mut ids: Vec<u128> = names.iter().filter_map(id).collect();
    ids.sort_unstable();
    ids
}
