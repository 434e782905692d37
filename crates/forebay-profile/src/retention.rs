//! Which records of I/O are kept: the newest, within a number and within a size.

use std::path::Path;

use forebay_host::files;
use forebay_host::messages::Messages;

use crate::error::Error;
use crate::ids::ids;
use crate::job_file;

/// Records that are kept.
const RECORDS_MAX: usize = 200;
/// What they may take together, traces included.
const RECORDS_BYTES_MAX: u64 = 4 << 30;

/// Removes old records in the directory of this one, as the last step of its job: reading all records takes time.
pub fn prune(ended: &Path, messages: &dyn Messages) {
    if let Err(error) = remove_surplus(ended) {
        messages.warning(&format!("old records of I/O are not removed: {error}"));
    }
}

/// Removes the oldest records in its directory beyond the limits; never itself, nor the newest, nor one whose job may
/// still run.
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
                // Another job that ended was faster.
                Err(error) if error.is_not_found() => {}
                removed => removed?,
            }
        }
    }
    Ok(())
}
