//! Removes partial files, or keeps their contents for a restart.
//! Assumes that no other process runs the journal: only `discard_partial` takes its lock.
//! Removes only what has a name with `.forebay-` and the tag of the run, and all that is in such a directory.

use std::collections::BTreeMap;

use std::path::{Path, PathBuf};

use forebay_host::files::{self, Kind};

use crate::copy::directories::{create_one, restore_write_access};
use crate::error::Error;
use crate::journal::database::Journal;
use crate::journal::directories::Unfinished;
use crate::model::partial_names::{PREFIX, is_part, not_removed, staging_dir_name, temporary};

/// Removes partial files and directories in `directory`, with `is_deep` also below it. Their names begin with
/// `.forebay-` and `prefix`, a tag or its beginning. Returns false if `directory` cannot be listed.
pub fn remove_parts_in(
    directory: &Path,
    prefix: &str,
    is_deep: bool,
) -> Result<bool, forebay_host::Error> {
    let prefix = format!("{PREFIX}{prefix}");
    let mut directories = vec![directory.to_owned()];
    let mut is_listed = true;
    while let Some(one) = directories.pop() {
        let Ok(found) = files::kinds_in(&one) else {
            is_listed &= one != directory;
            continue;
        };
        for (name, kind) in found {
            let path = one.join(&name);
            let is_part = name.as_encoded_bytes().starts_with(prefix.as_bytes()) && is_part(&path);
            match kind {
                Kind::Directory if is_part => files::remove_tree(&path)?,
                _ if is_part => files::remove_file(&path)?,
                Kind::Directory if is_deep => directories.push(path),
                _ => {}
            }
        }
    }
    Ok(is_listed)
}

/// Removes the leftovers of a killed run that will not restart. Returns the number of removed
/// files.
pub fn remove_partial_files(journal: &Journal, tag: &str) -> Result<usize, Error> {
    let (removed, mut failed) = remove_all_partial_files(journal, tag, Unfinished::Any)?;
    match failed.pop() {
        Some(error) => Err(error.into()),
        None => Ok(removed),
    }
}

/// As `remove_parts`, but continues after errors and returns them.
fn remove_all_partial_files(
    journal: &Journal,
    tag: &str,
    directories: Unfinished,
) -> Result<(usize, Vec<forebay_host::Error>), Error> {
    let (mut removed, mut failed) = (0, Vec::new());
    for (id, target) in journal.targets_in_progress()? {
        match files::remove_file(&temporary(&target, tag, id)) {
            Ok(()) => removed += 1,
            Err(error) if error.is_absent() => {}
            Err(error) => failed.push(error),
        }
    }
    for (_, _, filled) in partial_directories(journal, tag, directories)? {
        let inside = files::names_in(&filled).map_or(0, |names| names.len());
        match files::remove_tree(&filled) {
            Ok(()) => removed += inside,
            Err(error) => failed.push(error),
        }
    }
    Ok((removed, failed))
}

/// Removes leftovers of a killed run and marks their files as planned. Directories stay as they
/// are: a restart finishes them. [`Journal::notes`] lists leftovers that cannot be removed.
///
/// # Errors
/// [`Error::Locked`] if another process runs the journal; an error if the journal cannot be written.
pub fn discard_partial(journal: &Journal, tag: &str) -> Result<(), Error> {
    let _running = journal.lock()?;
    reset_and_discard(journal, tag, Unfinished::Any)
}

pub(crate) fn reset_and_discard(
    journal: &Journal,
    tag: &str,
    directories: Unfinished,
) -> Result<(), Error> {
    let mut notes = BTreeMap::new();
    for error in remove_all_partial_files(journal, tag, directories)?.1 {
        let text = not_removed(&error);
        notes.entry(text).or_insert((0, error.path)).0 += 1;
    }
    for (text, (count, example)) in notes {
        journal.add_note(&text, count, &example)?;
    }
    journal.reset_in_progress()
}

/// Removes the partial files and directories of what the last plan does not have any more, and then its rows.
pub(crate) fn remove_outdated(journal: &Journal, tag: &str) -> Result<(), Error> {
    let outdated = journal.outdated_targets()?;
    if outdated.is_empty() {
        return Ok(()); // each outdated directory has such a file
    }
    let parts =
        outdated.into_iter().map(|(id, target)| files::remove_file(&temporary(&target, tag, id)));
    let trees = partial_directories(journal, tag, Unfinished::Outdated)?.into_iter();
    let trees = trees.map(|(_, _, filled)| files::remove_tree(&filled));
    for error in parts.chain(trees).filter_map(Result::err).filter(|error| !error.is_absent()) {
        journal.add_note(&not_removed(&error), 1, &error.path)?;
    }
    journal.delete_outdated()
}

/// Turns the files in partial directories of a killed run into partial files of this run. Files
/// that cannot be renamed are copied again.
pub(crate) fn salvage_staged(journal: &Journal, tag: &str) -> Result<(), Error> {
    for (directory, target, filled) in partial_directories(journal, tag, Unfinished::Any)? {
        let made = create_one(&target).and_then(|_| restore_write_access(&target));
        if made.is_ok() {
            for (id, name) in journal.names_in_progress(directory)? {
                let part = temporary(&target.join(&name), tag, id);
                files::rename(&filled.join(&name), &part).ok(); // on failure, it is copied again
            }
        }
        if let Err(error) = files::remove_tree(&filled) {
            journal.add_note(&not_removed(&error), 1, &filled)?;
        }
    }
    Ok(())
}

/// Partial directories that exist: number, target, and path of the partial directory.
pub(crate) fn partial_directories(
    journal: &Journal,
    tag: &str,
    among: Unfinished,
) -> Result<Vec<(i64, PathBuf, PathBuf)>, Error> {
    let staging_dir = |(id, target): (i64, PathBuf)| {
        let staging_dir = staging_dir_name(&target, tag, id);
        let is_there =
            files::status_of_name(&staging_dir).is_ok_and(|it| it.kind == Kind::Directory);
        is_there.then_some((id, target, staging_dir))
    };
    let trees = journal.unfinished_trees(among)?;
    Ok(trees.into_iter().filter_map(staging_dir).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remove_parts_in_removes_only_names_with_the_prefix() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let at = |name: &str| scratch.path().join(name);
        files::make_directories(&at("below/.forebay-7-2.dir.part"), 0o700).expect("made");
        let names =
            [".forebay-7-1.part", ".forebay-8-1.part", "below/.forebay-7-3.part", "file.part"];
        for name in names {
            files::make_file(&at(name), 0o600).expect("made");
        }
        let remaining = || names.map(|name| files::status(&at(name)).is_ok());
        assert!(remove_parts_in(scratch.path(), "7-", false).expect("removed"));
        assert_eq!(remaining(), [false, true, true, true]);
        assert!(remove_parts_in(scratch.path(), "7-", true).expect("removed"));
        assert_eq!(remaining(), [false, true, false, true]);
        assert_eq!(files::names_in(&at("below")).expect("listed").len(), 0);
        assert!(!remove_parts_in(&at("absent"), "7-", true).expect("removed"));
    }
}
