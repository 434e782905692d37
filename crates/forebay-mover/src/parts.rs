//! Files between their first and their last byte.

use std::path::{Path, PathBuf};

use forebay_host::files;

use crate::engine::{Run, Stop};
use crate::item::Item;
use crate::journal::State;
use crate::{Error, Journal, Options};

/// Temporary name of the entry with this number on its way to `target`; `tag` keeps two stagings apart.
pub(crate) fn temporary(target: &Path, tag: &str, id: i64) -> PathBuf {
    let directory = target.parent().unwrap_or(Path::new("/"));
    directory.join(format!(".forebay-{tag}-{id}.part"))
}

pub(crate) fn is_part(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.starts_with(b".forebay-") && name.ends_with(b".part")
}

impl Journal {
    /// Removes what a staging that was killed left half done, where nobody will go on with it. Returns how
    /// many files it were.
    ///
    /// # Errors
    /// If one cannot be removed, or the journal not be used.
    pub fn remove_parts(&self, tag: &str) -> Result<usize, Error> {
        let mut removed = 0;
        for (id, target) in self.targets_in_hand()? {
            match files::remove_file(&temporary(&target, tag, id)) {
                Err(error) if error.is_not_found() => {}
                done => {
                    done?;
                    removed += 1;
                }
            }
        }
        Ok(removed)
    }

    /// Does what one who is asked to stop does at his end, for one who was killed: half files go, what was begun is
    /// to be begun again, and directories get their modes if no file is left.
    ///
    /// # Errors
    /// [`Error::InHand`] if another process carries it out; as [`Journal::remove_parts`].
    pub fn take_away_half_done(&self, tag: &str) -> Result<(), Error> {
        let _running = self.take_in_hand()?;
        let options = Options::of(tag);
        let stop = Stop::of(&|| true, true);
        Run::new(self, &options, &|_| {}, &stop).end().map(drop)
    }
}

impl Run<'_> {
    /// Something else has put the file in its place since we were killed: our own half of it is of no use.
    pub(crate) fn drop_part(&self, item: &Item) {
        if item.state == State::Planned {
            return; // it was not begun
        }
        let part = temporary(&item.target, &self.options.tag, item.id);
        if files::status_of_name(&part).is_ok() {
            self.take_away(&part);
        }
    }
}
