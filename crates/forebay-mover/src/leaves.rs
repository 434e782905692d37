//! Directories without directories in them, and with few small files: a new one is filled under another name, which
//! becomes its own when all that is in it is whole. That is one rename for all of its files.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use forebay_host::files::{self, Kind};
use rusqlite::Connection;

use crate::batch::{TOGETHER, Written};
use crate::directories::{FILLED, make_one, open_again};
use crate::engine::Run;
use crate::item::Item;
use crate::journal::path_at;
use crate::parts::{not_removed, temporary};
use crate::planning::bytes;
use crate::{Error, Journal};

/// As in `limits.h`, with the zero at the end; and the longest name.
const PATH_MAX: usize = 4096;
const NAME_MAX: usize = 255;

/// What of a directory is to be moved.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Leaf {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) largest_bytes: u64,
    /// How often the journal comes to it, by the numbers of its entries.
    times: u64,
}

impl Leaf {
    pub(crate) fn most(files: u64, bytes: u64, largest_bytes: u64) -> Self {
        Self {
            files,
            bytes,
            largest_bytes,
            times: 1,
        }
    }

    /// Does it all go in one batch, and is it worth it?
    fn fits(&self, most: &Self) -> bool {
        (TOGETHER as u64..=most.files).contains(&self.files)
            && self.bytes <= most.bytes
            && self.largest_bytes <= most.largest_bytes
            && self.times == most.times
    }
}

/// The name under which the directory with this number is filled on its way to `target`.
fn aside(target: &Path, tag: &str, directory: i64) -> PathBuf {
    let parent = target.parent().unwrap_or(Path::new("/"));
    parent.join(format!(".forebay-{tag}-{directory}.dir.part"))
}

/// One of that name is our own, from a staging that was killed.
fn make_aside(aside: &Path) -> forebay_host::Result<()> {
    match files::make_directory(aside, FILLED) {
        Err(error) if error.already_exists() => {
            files::remove_tree(aside)?;
            files::make_directory(aside, FILLED)
        }
        made => made,
    }
}

/// One that is being filled.
pub(crate) struct Filled {
    directory: i64,
    aside: Arc<Path>,
    target: PathBuf,
    has_arrived: bool,
}

impl Run<'_> {
    /// Nothing stood in the directory of this when it was made for it.
    pub(crate) fn is_fresh(&self, item: &Item) -> bool {
        let is_made = item.filled.is_some() || !self.leaves.contains_key(&item.directory);
        is_made && self.fresh.contains(&item.directory)
    }

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
            let is_short = aside.as_os_str().len() + 1 + NAME_MAX < PATH_MAX;
            let may_rename = self.may_rename_leaves.load(Ordering::Relaxed);
            if !is_short || !may_rename || make_aside(&aside).is_err() {
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

    /// Gives those their names in which there is what was written and nothing else: their files need none any more.
    /// Otherwise, and where something has that name by now, each file goes there by itself, so that it is told of if it
    /// has vanished.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub(crate) fn place_leaves(
        &self,
        filled: &mut [Filled],
        written: &[Written],
    ) -> Result<(), Error> {
        let mut names: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for one in written.iter().filter(|one| one.item.filled.is_some()) {
            let name = one.temporary.as_ref().and_then(|path| path.file_name());
            names.entry(one.item.directory).or_default().extend(name);
        }
        for one in filled {
            let written = names.remove(&one.directory).unwrap_or_default();
            let found = files::names_in(&one.aside);
            if found.is_ok_and(|found| found.iter().map(OsString::as_os_str).eq(written)) {
                self.place_leaf(one);
            }
            if !one.has_arrived {
                self.make_leaf(one.directory, &one.target)?;
            }
        }
        Ok(())
    }

    fn place_leaf(&self, one: &mut Filled) {
        match files::rename_directory_anew(&one.aside, &one.target) {
            Ok(()) => one.has_arrived = true,
            Err(error) if error.is_denied() => {
                self.may_rename_leaves.store(false, Ordering::Relaxed);
            }
            Err(_) => {} // each of its files says why, if it still does not go
        }
    }

    /// Under its own name. Another staging may have made and closed it.
    fn make_leaf(&self, directory: i64, target: &Path) -> Result<(), Error> {
        match make_one(target).and_then(|_| open_again(target)) {
            Ok(()) => Ok(()),
            Err(reason) => self.journal.directory_has_failed(directory, &reason),
        }
    }

    /// Nothing of these stays behind; but if we were stopped, whoever stops us takes away what is in them.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub(crate) fn end_leaves(&self, filled: &mut [Filled]) -> Result<(), Error> {
        for one in filled.iter_mut().filter(|one| !one.has_arrived) {
            let is_empty = files::names_in(&one.aside).is_ok_and(|names| names.is_empty());
            if self.is_stopped() && !is_empty {
                continue;
            }
            if is_empty {
                self.place_leaf(one);
            }
            if one.has_arrived {
                continue;
            }
            self.make_leaf(one.directory, &one.target)?;
            match files::remove_tree(&one.aside) {
                Err(error) if !error.is_absent() => self.note(&not_removed(&error), &one.aside),
                _ => {}
            }
        }
        Ok(())
    }

    /// Of a directory that is filled under another name all that is in it goes into one batch.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub(crate) fn add_rest_of_leaf(&self, items: &mut Vec<Item>) -> Result<(), Error> {
        let Some((id, directory)) = items.last().map(|last| (last.id, last.directory)) else {
            return Ok(());
        };
        let Some(files) = self.leaves.get(&directory) else {
            return Ok(());
        };
        let is_of_it = |item: &Item| item.directory == directory;
        let taken = items.iter().rev().take_while(|item| is_of_it(item)).count();
        let left = usize::try_from(*files).map_or(0, |files| files.saturating_sub(taken));
        let rest = self.journal.items_after(id, left)?;
        items.extend(rest.into_iter().take_while(is_of_it));
        Ok(())
    }
}

/// Numbers of those that have their names: all that was written in them is at its place.
pub(crate) fn arrived(filled: &[Filled]) -> BTreeSet<i64> {
    let arrived = filled.iter().filter(|one| one.has_arrived);
    arrived.map(|one| one.directory).collect()
}

impl Journal {
    /// Numbers of directories that can be filled under another name, and how many files each: no other one has the same
    /// place or one below it, and none is the one that was named itself, beside which nothing is to appear.
    pub(crate) fn leaves(&self, most: &Leaf) -> Result<BTreeMap<i64, u64>, Error> {
        let named: BTreeSet<PathBuf> = self
            .transfers("")?
            .iter()
            .map(|transfer| transfer.target.components().collect())
            .collect();
        self.with(|connection| {
            let mut fitting = in_directories(connection)?;
            fitting.retain(|_, leaf| leaf.fits(most));
            let mut leaves = BTreeMap::new();
            let mut select = connection.prepare(
                "SELECT d.id, p.path, d.target FROM directory d JOIN place p ON p.id = d.place WHERE d.is_of_tree AND d.state < 2 \
                 AND d.place NOT IN (SELECT place FROM directory GROUP BY place HAVING count(*) > 1)",
            )?;
            let mut look = connection
                .prepare("SELECT NOT EXISTS (SELECT 1 FROM place WHERE path > ? AND path < ?)")?;
            let mut rows = select.query([])?;
            while let Some(row) = rows.next()? {
                let Some(leaf) = fitting.get(&row.get(0)?) else {
                    continue;
                };
                if named.contains(&path_at(row, 2)?) {
                    continue;
                }
                let place = path_at(row, 1)?;
                // What is below it begins with its path and a slash; '0' comes right after that.
                let [from, to] = [b"/", b"0"].map(|end| [bytes(&place), end].concat());
                if look.query_row([from, to], |row| row.get(0))? {
                    leaves.insert(row.get(0)?, leaf.files);
                }
            }
            Ok(leaves)
        })
    }

    /// What a killed staging has written into directories under other names becomes the half files of whoever goes on
    /// with it, or is copied again.
    pub(crate) fn take_leaves_apart(&self, tag: &str) -> Result<(), Error> {
        for (directory, target, filled) in self.filled(tag, UNFINISHED)? {
            let made = make_one(&target).and_then(|_| open_again(&target));
            if made.is_ok() {
                for (id, name) in self.names_in_hand(directory)? {
                    let part = temporary(&target.join(&name), tag, id);
                    files::rename(&filled.join(&name), &part).ok(); // if it does not go, it is copied again
                }
            }
            if let Err(error) = files::remove_tree(&filled) {
                self.add_note(&not_removed(&error), 1, &filled)?;
            }
        }
        Ok(())
    }

    /// Directories that a staging was filling under another name, among these: number, target, and that name.
    pub(crate) fn filled(
        &self,
        tag: &str,
        among: &str,
    ) -> Result<Vec<(i64, PathBuf, PathBuf)>, Error> {
        let begun: Vec<(i64, PathBuf)> = self.with(|connection| {
            let query = format!("SELECT id, target FROM directory WHERE is_of_tree AND {among}");
            let mut select = connection.prepare(&query)?;
            let rows = select.query_map([], |row| Ok((row.get(0)?, path_at(row, 1)?)))?;
            rows.collect()
        })?;
        let aside = |(id, target): (i64, PathBuf)| {
            let aside = aside(&target, tag, id);
            let is_there = files::status_of_name(&aside).is_ok_and(|it| it.kind == Kind::Directory);
            is_there.then_some((id, target, aside))
        };
        Ok(begun.into_iter().filter_map(aside).collect())
    }
}

/// Directories in which a killed staging may have left something, whatever its journal knows of it; and those in which
/// one that is stopped has left it, which is asked while somebody waits.
pub(crate) const UNFINISHED: &str = "state <> 4";
pub(crate) const IN_HAND: &str =
    "state IN (1, 5) AND id IN (SELECT directory FROM entry WHERE state IN (1, 2, 3, 5))";

/// What is to be moved, by the numbers of the directories that it is in.
fn in_directories(connection: &Connection) -> rusqlite::Result<BTreeMap<i64, Leaf>> {
    let mut found: BTreeMap<i64, Leaf> = BTreeMap::new();
    let mut last = None;
    let mut select = connection.prepare(
        "SELECT directory, size_bytes FROM entry WHERE state < 4 AND link_of IS NULL ORDER BY id",
    )?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (directory, size_bytes) = (row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned());
        let leaf = found.entry(directory).or_default();
        leaf.files += 1;
        leaf.bytes = leaf.bytes.saturating_add(size_bytes);
        leaf.largest_bytes = leaf.largest_bytes.max(size_bytes);
        leaf.times += u64::from(last.replace(directory) != Some(directory));
    }
    Ok(found)
}
