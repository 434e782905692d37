//! Directories without directories in them, and with few small files: a new one is filled under another name, which
//! becomes its own when all that is in it is whole. That is one rename for all of its files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_host::files::{self, Kind, Status};

use crate::batch::TOGETHER;
use crate::directories::{FILLED, ROWS, make_one};
use crate::engine::Run;
use crate::item::Item;
use crate::options::{Options, Placing};
use crate::parts::{not_removed, temporary};
use crate::steps::Directory;
use crate::{Error, Journal};

/// What is in such a directory: as many files and links, all of them bytes, and the largest.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Leaf {
    pub(crate) files: u64,
    bytes: u64,
    largest_bytes: u64,
}

impl Leaf {
    /// With one more in it. None: then it cannot be filled under another name.
    pub(crate) fn with(mut self, status: &Status) -> Option<Self> {
        match status.kind {
            Kind::Other => return Some(self), // it is refused
            Kind::File if status.links > 1 => return None,
            _ => {}
        }
        self.files += 1;
        self.bytes = self.bytes.saturating_add(status.size_bytes);
        self.largest_bytes = self.largest_bytes.max(status.size_bytes);
        Some(self)
    }

    /// Does it all go in one batch, and is it worth it?
    fn fits(&self, most: &Self) -> bool {
        (TOGETHER as u64..=most.files).contains(&self.files)
            && self.bytes <= most.bytes
            && self.largest_bytes <= most.largest_bytes
    }
}

/// Those that one batch takes as a whole.
pub(crate) fn fitting(
    mut leaves: BTreeMap<i64, Leaf>,
    options: &Options,
    most_files: u64,
    most_bytes: u64,
) -> BTreeMap<i64, Leaf> {
    if options.placing == Placing::Direct {
        return BTreeMap::new(); // nothing has another name there
    }
    let most = Leaf {
        files: most_files,
        bytes: most_bytes,
        largest_bytes: options.piece_bytes,
    };
    leaves.retain(|_, leaf| leaf.fits(&most));
    leaves
}

/// The name under which the directory with this number is filled on its way to `target`.
fn aside(target: &Path, tag: &str, directory: i64) -> PathBuf {
    let parent = target.parent().unwrap_or(Path::new("/"));
    parent.join(format!(".forebay-{tag}-{directory}.dir.part"))
}

/// One that is being filled.
pub(crate) struct Filled {
    directory: i64,
    aside: Arc<Path>,
    target: PathBuf,
    has_arrived: bool,
}

impl Run<'_> {
    /// Makes those of the directories of these that are filled under another name, or, where that does not go, under
    /// their own.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub(crate) fn begin_leaves(&self, items: &mut [Item]) -> Result<Vec<Filled>, Error> {
        let mut filled: Vec<Filled> = Vec::new();
        let is_leaf = |item: &&mut Item| self.leaves.contains_key(&item.directory);
        for of_one in items.chunk_by_mut(|a, b| a.directory == b.directory) {
            let Some(first) = of_one.first_mut().filter(is_leaf) else {
                continue;
            };
            let target = first.target.parent().unwrap_or(Path::new("/")).to_owned();
            let aside = aside(&target, &self.options.tag, first.directory);
            if files::make_directory(&aside, FILLED).is_err() {
                self.make_leaf(first.directory, &target)?;
                continue;
            }
            let one = Filled {
                directory: first.directory,
                aside: Arc::from(aside),
                target,
                has_arrived: false,
            };
            for item in of_one {
                item.filled = Some(one.aside.clone());
            }
            filled.push(one);
        }
        Ok(filled)
    }

    /// Gives those their names that have them not yet: their files need none any more. Where something has that name by
    /// now, each file goes into it by itself.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub(crate) fn place_leaves(&self, filled: &mut [Filled]) -> Result<(), Error> {
        for one in filled.iter_mut().filter(|one| !one.has_arrived) {
            match files::rename_anew(&one.aside, &one.target) {
                Ok(()) => one.has_arrived = true,
                Err(_) => self.make_leaf(one.directory, &one.target)?,
            }
        }
        Ok(())
    }

    /// Under its own name.
    fn make_leaf(&self, directory: i64, target: &Path) -> Result<(), Error> {
        match make_one(target) {
            Ok(_) => Ok(()),
            Err(reason) => self.journal.directory_has_failed(directory, &reason),
        }
    }

    /// Nothing of these stays behind, unless we were stopped: then whoever stops us takes it away.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub(crate) fn end_leaves(&self, filled: &mut [Filled]) -> Result<(), Error> {
        if !self.is_stopped() {
            self.place_leaves(filled)?; // those of which all has failed
        }
        for one in filled.iter().filter(|one| !one.has_arrived) {
            match files::remove_empty(&one.aside) {
                Err(error) if !error.is_absent() => self.note(&not_removed(&error), &one.aside),
                _ => {}
            }
        }
        Ok(())
    }

    /// Of a directory that is filled under another name all that is in it goes into one batch.
    pub(crate) fn add_rest_of_leaf(&self, items: &mut Vec<Item>) -> Result<(), Error> {
        let Some(last) = items.last() else {
            return Ok(());
        };
        let (id, directory) = (last.id, last.directory);
        let Some(leaf) = self.leaves.get(&directory) else {
            return Ok(());
        };
        let is_of_it = |item: &&Item| item.directory == directory;
        let taken = items.iter().rev().take_while(is_of_it).count();
        let left = usize::try_from(leaf.files).unwrap_or(usize::MAX) - taken;
        let rest = self.journal.items_after(id, left)?;
        items.extend(
            rest.into_iter()
                .take_while(|item| item.directory == directory),
        );
        Ok(())
    }
}

/// Numbers of those that have their names: all that was written in them is at its place.
pub(crate) fn arrived(filled: &[Filled]) -> BTreeSet<i64> {
    let arrived = filled.iter().filter(|one| one.has_arrived);
    arrived.map(|one| one.directory).collect()
}

impl Journal {
    /// What a killed staging has written into directories under other names becomes the half files of whoever goes on
    /// with it.
    pub(crate) fn take_leaves_apart(&self, tag: &str) -> Result<(), Error> {
        self.each_filled(tag, &mut |directory, filled| {
            let made = make_one(&directory.target).is_ok(); // if not, whoever goes on is told why
            for (id, name) in self.names_in_hand(directory.id)? {
                let target = directory.target.join(&name);
                let part = temporary(&target, tag, id);
                if made
                    && let Err(error) = files::rename(&filled.join(&name), &part)
                    && !error.is_absent()
                {
                    self.add_note(&not_removed(&error), 1, &part)?;
                }
            }
            match files::remove_tree(filled) {
                Err(error) => self.add_note(&not_removed(&error), 1, filled),
                Ok(()) => Ok(()),
            }
        })
    }

    /// Directories that a killed staging was filling under another name, and that name.
    pub(crate) fn each_filled(
        &self,
        tag: &str,
        act: &mut dyn FnMut(&Directory, &Path) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut last = i64::MAX;
        loop {
            let found = self.directories_made_before(last, ROWS)?;
            let Some(end) = found.last() else {
                return Ok(());
            };
            last = end.id;
            for directory in &found {
                let aside = aside(&directory.target, tag, directory.id);
                if files::status_of_name(&aside).is_ok() {
                    act(directory, &aside)?;
                }
            }
        }
    }
}
