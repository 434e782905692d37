//! Files between their first and their last byte.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use forebay_host::files::{self, Kind};

use crate::engine::Run;
use crate::item::Item;
use crate::journal::State;
use crate::leaves::UNFINISHED;
use crate::{Error, Journal};

/// Temporary name of the entry with this number on its way to `target`; `tag` keeps two stagings apart.
pub(crate) fn temporary(target: &Path, tag: &str, id: i64) -> PathBuf {
    let directory = target.parent().unwrap_or(Path::new("/"));
    directory.join(format!(".forebay-{tag}-{id}.part"))
}

const PREFIX: &str = ".forebay-";

pub(crate) fn is_part(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.starts_with(PREFIX.as_bytes()) && name.ends_with(b".part")
}

/// Removes the partial files and directories in `directory` whose names begin with `.forebay-` and `prefix`: a tag,
/// or the begin of one. With `is_deep`, also in the directories below it. Returns false if `directory` cannot be listed.
///
/// # Errors
/// If a partial file cannot be removed.
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

impl Journal {
    /// Removes what a staging that was killed left half done, where nobody will go on with it. Returns how
    /// many files it were.
    ///
    /// # Errors
    /// If one cannot be removed, or the journal not be used.
    pub fn remove_parts(&self, tag: &str) -> Result<usize, Error> {
        let (removed, mut failed) = self.remove_all_parts(tag, UNFINISHED)?;
        match failed.pop() {
            Some(error) => Err(error.into()),
            None => Ok(removed),
        }
    }

    /// The same; those that cannot be removed keep no other one.
    fn remove_all_parts(
        &self,
        tag: &str,
        directories: &str,
    ) -> Result<(usize, Vec<forebay_host::Error>), Error> {
        let (mut removed, mut failed) = (0, Vec::new());
        for (id, target) in self.targets_in_hand()? {
            match files::remove_file(&temporary(&target, tag, id)) {
                Ok(()) => removed += 1,
                Err(error) if error.is_absent() => {}
                Err(error) => failed.push(error),
            }
        }
        for (_, _, filled) in self.filled(tag, directories)? {
            let inside = files::names_in(&filled).map_or(0, |names| names.len());
            match files::remove_tree(&filled) {
                Ok(()) => removed += inside,
                Err(error) => failed.push(error),
            }
        }
        Ok((removed, failed))
    }

    /// Takes away what one who was killed has left half done, and what was begun is to be begun again. Directories stay
    /// as they are: whoever goes on finishes them. What cannot be removed is in [`Journal::notes`].
    ///
    /// # Errors
    /// [`Error::InHand`] if another process carries it out; if the journal cannot be written.
    pub fn take_away_half_done(&self, tag: &str) -> Result<(), Error> {
        let _running = self.take_in_hand()?;
        self.put_down_without_parts(tag, UNFINISHED)
    }

    pub(crate) fn put_down_without_parts(&self, tag: &str, directories: &str) -> Result<(), Error> {
        let mut notes = BTreeMap::new();
        for error in self.remove_all_parts(tag, directories)?.1 {
            let text = not_removed(&error);
            notes.entry(text).or_insert((0, error.path)).0 += 1;
        }
        for (text, (count, example)) in notes {
            self.add_note(&text, count, &example)?;
        }
        self.put_down()
    }
}

/// Of something that we have left half done.
pub(crate) fn not_removed(error: &forebay_host::Error) -> String {
    format!(
        "what was half done could not be removed: {}",
        error.source.kind()
    )
}

impl Run<'_> {
    /// Something else has put the file in its place since we were killed: our own half of it is of no use.
    pub(crate) fn drop_part(&self, item: &Item) {
        if item.state == State::Planned {
            return; // it was not begun
        }
        let part = item.part(&self.options.tag);
        if files::status_of_name(&part).is_ok() {
            self.take_away(&part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remove_parts_in_removes_only_names_with_the_prefix() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let at = |name: &str| scratch.path().join(name);
        files::make_directories(&at("below/.forebay-7-2.dir.part"), 0o700).expect("made");
        let names = [
            ".forebay-7-1.part",
            ".forebay-8-1.part",
            "below/.forebay-7-3.part",
            "file.part",
        ];
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
