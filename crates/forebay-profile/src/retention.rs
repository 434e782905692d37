//! Keeps the newest records of I/O, up to a number and a total size.

use std::path::Path;

use forebay_host::files;
use forebay_host::messages::Messages;

use crate::error::Error;
use crate::ids::ids;
use crate::job_file;

/// The maximum number of records.
const RECORDS_MAX: usize = 200;
/// The maximum total size, including traces.
const RECORDS_BYTES_MAX: u64 = 4 << 30;

/// Removes old records next to this one. The last step of a job, because it is slow.
pub fn prune(ended: &Path, messages: &dyn Messages) {
    if let Err(error) = remove_surplus(ended) {
        messages.warning(&format!("old records of I/O are not removed: {error}"));
    }
}

/// Removes the oldest records beyond the limits. Never removes `ended`, the newest record, or a
/// record whose job may still run.
fn remove_surplus(ended: &Path) -> Result<(), Error> {
    let Some(profiles) = ended.parent() else {
        return Ok(());
    };
    let mut bytes = 0;
    for (index, id) in ids(profiles).into_iter().rev().enumerate() {
        let directory = profiles.join(id.to_string());
        bytes += files::tree_bytes(&directory);
        let is_surplus = index >= RECORDS_MAX || bytes > RECORDS_BYTES_MAX;
        if index > 0 && is_surplus && directory != ended && !job_file::may_run(&directory)? {
            match files::remove_tree(&directory) {
                // Another job removed it first.
                Err(error) if error.is_not_found() => {}
                removed => removed?,
            }
        }
    }
    Ok(())
}
