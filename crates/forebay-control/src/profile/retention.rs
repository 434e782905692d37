//! Which records of I/O are kept: the newest, within a number and within a size.

use std::path::Path;

use forebay_host::files;

use super::job_file;
use crate::Error;

/// Records that are kept.
const RECORDS_MAX: usize = 200;
/// What they may take together, traces included.
const RECORDS_BYTES_MAX: u64 = 4 << 30;

/// Ids of the records in a directory, oldest first. What is not named as a record is none.
pub(super) fn ids(profiles: &Path) -> Vec<u128> {
    let names = files::names_in(profiles).unwrap_or_default();
    let id = |name: &std::ffi::OsString| name.to_str()?.parse().ok();
    let mut ids: Vec<u128> = names.iter().filter_map(id).collect();
    ids.sort_unstable();
    ids
}

/// Removes the oldest records beside this one beyond the limits; never itself, nor the newest, nor one whose job may
/// still run.
pub(super) fn retain(beside: &Path) -> Result<(), Error> {
    let Some(profiles) = beside.parent() else {
        return Ok(());
    };
    let mut bytes = 0;
    for (index, id) in ids(profiles).into_iter().rev().enumerate() {
        let directory = profiles.join(id.to_string());
        bytes += files::tree_bytes(&directory);
        let is_surplus = index >= RECORDS_MAX || bytes > RECORDS_BYTES_MAX;
        if index > 0 && is_surplus && directory != beside && !job_file::may_run(&directory)? {
            match files::remove_tree(&directory) {
                // Another job that ended was faster.
                Err(error) if error.is_not_found() => {}
                removed => removed?,
            }
        }
    }
    Ok(())
}
