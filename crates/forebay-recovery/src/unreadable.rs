//! Forgets jobs whose records cannot be read. Only their names are known, not what the jobs hold.

use std::path::Path;

use forebay_host::process::Identity;
use forebay_host::{files, system};
use forebay_mover::Journal;
use forebay_record::id_of;

use crate::error::{Error, ignore_not_found};

/// Removes the record with the files next to it, the partial files that its journal names, and the job's directory.
/// The allocation stays.
///
/// # Errors
/// If the job may be running here, or something cannot be removed.
pub fn forget_unreadable(record: &Path) -> Result<(), Error> {
    let stem = record.file_stem().unwrap_or_default().to_string_lossy();
    let id = id_of(record).unwrap_or_default();
    let runner = stem.strip_prefix(id).and_then(|rest| rest.strip_prefix('-'));
    if let Some((pid, host)) = runner.and_then(|runner| runner.split_once('@'))
        && host == system::hostname()
        && let Some(process) = pid.parse().ok().and_then(|pid| Identity::of(pid).ok())
        && process.is_of_our_user()
    {
        return Err(Error::IsRunning(id.to_owned()));
    }
    // A damaged journal names nothing.
    if let Ok(journal) = Journal::open_existing(&record.with_extension("journal")) {
        forebay_mover::remove_partial_files(&journal, id)?;
    }
    ignore_not_found(files::remove_tree(&std::env::temp_dir().join(format!("forebay-{id}"))))?;
    let directory = files::parent_of(record);
    let own = format!("{stem}.");
    let mut names = files::names_in(directory)?;
    names.retain(|name| name.to_string_lossy().starts_with(&own));
    // The record last: after an error, it is still found.
    names.sort_by_key(|name| record.ends_with(name));
    names.iter().try_for_each(|name| ignore_not_found(files::remove_file(&directory.join(name))))
}
