//! New directories of few small files: Forebay fills them under a temporary name and renames them.
//! Assumes that one batch has all files of such a directory. Never replaces a directory that has files in it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use forebay_host::files::{self, parent_of};

use crate::copy::context::CopyContext;
use crate::copy::directories::{FILLED, create_one, restore_write_access};
use crate::copy::durability::CopiedFile;
use crate::error::Error;
use crate::model::item::Item;
use crate::model::partial_names::{not_removed, staging_dir_name};

/// The limits of `limits.h`: of a path, with its terminating zero, and of a name.
const PATH_MAX: usize = 4096;

const NAME_MAX: usize = 255;

/// Creates a partial directory. An existing one is a leftover of a killed run.
fn create_staging_dir(staging_dir: &Path) -> forebay_host::Result<()> {
    match files::make_directory(staging_dir, FILLED) {
        Err(error) if error.already_exists() => {
            files::remove_tree(staging_dir)?;
            files::make_directory(staging_dir, FILLED)
        }
        made => made,
    }
}

/// A partial directory in progress.
pub(crate) struct StagedDirectory {
    directory: i64,
    staging_dir: Arc<Path>,
    target: PathBuf,
    has_arrived: bool,
}

impl CopyContext<'_> {
    /// Creates the partial directories for these items. Where that fails, creates the directory
    /// under its final name.
    pub(crate) fn create_staged(&self, items: &mut [Item]) -> Result<Vec<StagedDirectory>, Error> {
        let mut filled: Vec<StagedDirectory> = Vec::new();
        let is_leaf = |item: &&mut Item| self.directories.leaves.contains_key(&item.directory);
        for of_one in items.chunk_by_mut(|a, b| a.directory == b.directory) {
            let Some(first) = of_one.first_mut().filter(is_leaf) else {
                continue;
            };
            let target = parent_of(&first.target).to_owned();
            let staging_dir = staging_dir_name(&target, &self.options.tag, first.directory);
            let is_short = staging_dir.as_os_str().len() + 1 + NAME_MAX < PATH_MAX;
            let may_rename = !self.directories.refuses_rename.load(Ordering::Relaxed);
            if !is_short || !may_rename || !self.prepare_staging_dir(first.directory, &staging_dir)
            {
                self.create_directly(first.directory, &target)?;
                continue;
            }
            let one = StagedDirectory {
                directory: first.directory,
                staging_dir: Arc::from(staging_dir),
                target,
                has_arrived: false,
            };
            for item in of_one {
                item.filled = Some(one.staging_dir.clone());
            }
            filled.push(one);
        }
        Ok(filled)
    }

    /// Makes a partial directory. False if that fails: the reason is that of the final name, or there is none.
    fn prepare_staging_dir(&self, directory: i64, staging_dir: &Path) -> bool {
        create_staging_dir(staging_dir).is_ok()
            && self.identify_leaf(directory, staging_dir).is_ok()
    }

    /// Renames each partial directory that contains exactly the written files: these need no rename
    /// of their own. Otherwise, or if the final name exists, Forebay renames each file, so that a
    /// missing file is reported.
    pub(crate) fn rename_staged(
        &self,
        filled: &mut [StagedDirectory],
        written: &[CopiedFile],
    ) -> Result<(), Error> {
        let mut names: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for one in written.iter().filter(|one| one.item.filled.is_some()) {
            let name = one.temporary.as_ref().and_then(|path| path.file_name());
            names.entry(one.item.directory).or_default().extend(name);
        }
        for one in filled {
            let written = names.remove(&one.directory).unwrap_or_default();
            let found = files::names_in(&one.staging_dir);
            if found.is_ok_and(|found| found.iter().map(OsString::as_os_str).eq(written)) {
                self.rename_one_staged(one);
            }
            if !one.has_arrived {
                self.create_directly(one.directory, &one.target)?;
            }
        }
        Ok(())
    }

    fn rename_one_staged(&self, one: &mut StagedDirectory) {
        match files::rename_directory_noreplace(&one.staging_dir, &one.target) {
            Ok(()) => one.has_arrived = true,
            Err(error) if error.is_denied() => {
                self.directories.refuses_rename.store(true, Ordering::Relaxed);
            }
            Err(_) => {} // the renames of its files report the error, if it persists
        }
    }

    /// Creates a directory under its final name. Another staging may have created it and set its mode.
    fn create_directly(&self, directory: i64, target: &Path) -> Result<(), Error> {
        let made = create_one(target).and_then(|_| self.identify_leaf(directory, target));
        match made.and_then(|()| restore_write_access(target)) {
            Ok(()) => Ok(()),
            Err(reason) => {
                self.directories.failed.write().insert(directory, reason.clone());
                self.journal.record_directory_failed(directory, &reason)
            }
        }
    }

    /// Removes the remaining partial directories. After a stop, `end` removes those with files.
    pub(crate) fn discard_staged(&self, filled: &mut [StagedDirectory]) -> Result<(), Error> {
        for one in filled.iter_mut().filter(|one| !one.has_arrived) {
            let is_empty = files::names_in(&one.staging_dir).is_ok_and(|names| names.is_empty());
            if self.is_stopped() && !is_empty {
                continue;
            }
            if is_empty {
                self.rename_one_staged(one);
            }
            if one.has_arrived {
                continue;
            }
            self.create_directly(one.directory, &one.target)?;
            match files::remove_tree(&one.staging_dir) {
                Err(error) if !error.is_absent() => {
                    self.warn_once(&not_removed(&error), &one.staging_dir)
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Adds the rest of a leaf directory: one batch must contain all its files.
    pub(crate) fn add_rest_of_leaf(&self, items: &mut Vec<Item>) -> Result<(), Error> {
        let Some((id, directory)) = items.last().map(|last| (last.id, last.directory)) else {
            return Ok(());
        };
        let Some(files) = self.directories.leaves.get(&directory) else {
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

/// Numbers of the directories that have their final name, with all files written into them.
pub(crate) fn arrived(filled: &[StagedDirectory]) -> BTreeSet<i64> {
    let arrived = filled.iter().filter(|one| one.has_arrived);
    arrived.map(|one| one.directory).collect()
}
