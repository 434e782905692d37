//! Removes leftovers of jobs that were killed before they were recorded.
//! Removes only empty directories of this user and temporary files of records.
//! Assumes that the clocks of machines with the same state directory differ by less than two seconds.

use std::path::PathBuf;

use forebay_host::files::{self, Kind};
use forebay_host::{clock, users};
use forebay_record::{RANDOM_MAX, Records, id_of};

use crate::error::{Error, ignore_not_found};

/// Times are smaller than this for 30,000 years; an id above it is a time and a random number.
const MILLISECONDS_MAX: u128 = 1_000_000_000_000_000;

/// Removes leftovers of jobs that were killed before they were recorded: empty directories and
/// temporary files of records. The id in a name is the creation time.
///
/// # Errors
/// If a leftover cannot be listed or removed.
pub fn remove_unrecorded(records: &Records) -> Result<(), Error> {
    let temporary = std::env::temp_dir();
    let names = match files::names_in(&temporary) {
        // What cannot be found is left; jobs that are recorded do not need it.
        Err(error) if error.is_denied() || error.is_absent() => Vec::new(),
        names => names?,
    };
    for name in names {
        let id = name.to_str().and_then(|name| name.strip_prefix("forebay-"));
        let path = temporary.join(&name);
        let ours = || {
            let status = files::status_of_name(&path);
            status.is_ok_and(|s| s.kind == Kind::Directory && s.owner == users::user_id())
        };
        if id.is_some_and(|id| is_unrecorded(id, records)) && ours() {
            // The job may record itself now, so only an empty directory is removed.
            ignore_not_found(files::remove_empty(&path))?;
        }
    }
    for path in &records.begun {
        if id_of(path).is_some_and(|id| is_unrecorded(id, records)) {
            ignore_not_found(files::remove_file(path))?;
        }
    }
    Ok(())
}

/// True if this is the id of a job that was killed before it was recorded.
#[must_use]
pub fn is_unrecorded(id: &str, records: &Records) -> bool {
    let Some(made) = began_unix_ms(id) else {
        return false;
    };
    let old = clock::unix_milliseconds().saturating_sub(made) > forebay_store::unrecorded_ms_max();
    let recorded = |path: &PathBuf| id_of(path) == Some(id);
    old && !records.found.iter().any(|job| job.record.id == id)
        && !records.unreadable.iter().any(|(path, _)| recorded(path))
}

/// When the job with this id began, in milliseconds since 1970.
pub(crate) fn began_unix_ms(id: &str) -> Option<u128> {
    let made: u128 = id.parse().ok()?;
    Some(if made > MILLISECONDS_MAX { made / RANDOM_MAX } else { made })
}
