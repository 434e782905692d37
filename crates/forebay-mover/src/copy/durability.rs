//! Syncs files one by one, or a whole batch by file system.
//! Assumes that all files of a directory are on one file system. A sync of a file system also waits for the data of
//! other processes, so a small batch never does that; nor does a batch on FUSE, whose servers get no such call.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use forebay_host::files::{self, parent_of};
use forebay_host::filesystem;

use crate::model::item::{Item, LINK};
use crate::model::leaf_size::GROUP_SYNC_MIN;
use crate::model::reason::Reason;

/// A complete file, which may not have its final name yet.
pub(crate) struct CopiedFile {
    pub(crate) item: Item,
    /// `None`: it has its final name.
    pub(crate) temporary: Option<PathBuf>,
    pub(crate) checksum: Option<u64>,
    pub(crate) size_bytes: u64,
    pub(crate) was_there: bool,
}

/// How a batch is synced.
pub(crate) enum Syncing {
    Not,
    Each,
    /// One open file or directory by device, and the directories whose file system is known: whether it is FUSE, whose
    /// files are synced one by one.
    Together(BTreeMap<u64, File>, BTreeMap<i64, bool>),
}

impl Syncing {
    pub(crate) fn of(is_durable: bool, files: usize) -> Self {
        match (is_durable, files < GROUP_SYNC_MIN) {
            (false, _) => Self::Not,
            (true, true) => Self::Each,
            (true, false) => Self::Together(BTreeMap::new(), BTreeMap::new()),
        }
    }

    /// Registers or syncs a written file, and closes it.
    pub(crate) fn written(&mut self, item: &Item, file: File) -> Result<(), Reason> {
        match self {
            Self::Not => {}
            Self::Each => files::with_path(file.sync_all(), "sync", &item.target)?,
            Self::Together(file_systems, known) => match known.get(&item.directory) {
                Some(true) => files::with_path(file.sync_all(), "sync", &item.target)?,
                Some(false) => {}
                None if filesystem::is_fuse(&file, &item.target)? => {
                    files::with_path(file.sync_all(), "sync", &item.target)?;
                    known.insert(item.directory, true);
                }
                None => {
                    let status = files::status_of(&file, &item.target)?;
                    known.insert(item.directory, false);
                    if let Entry::Vacant(vacant) = file_systems.entry(status.device) {
                        vacant.insert(files::with_path(
                            file.try_clone(),
                            "open again",
                            &item.target,
                        )?);
                    }
                }
            },
        }
        Ok(files::close(file, &item.target)?)
    }

    /// Registers or syncs an unchanged file or link. The program that wrote it may not have synced it.
    pub(crate) fn there(&mut self, item: &Item) -> Result<(), Reason> {
        let is_known = match self {
            Self::Not => true,
            Self::Each => item.kind == LINK,
            Self::Together(_, known) => known.get(&item.directory) == Some(&false),
        };
        if is_known {
            return Ok(());
        }
        let path = if item.kind == LINK { parent_of(&item.target) } else { &item.target };
        self.written(item, files::open_source(path, true)?)
    }

    /// Makes new names in these directories survive a power failure, if they are not synced yet.
    pub(crate) fn finish<'a>(&self, targets: impl Iterator<Item = &'a Path>) -> Result<(), Reason> {
        let syncs_each = match self {
            Self::Not => false,
            Self::Each => true,
            Self::Together(file_systems, known) => {
                self::sync(file_systems)?;
                known.values().any(|is_fuse| *is_fuse)
            }
        };
        let directories: BTreeSet<_> =
            targets.filter(|_| syncs_each).filter_map(Path::parent).collect();
        Ok(directories.into_iter().try_for_each(files::sync_directory)?)
    }
}

pub(crate) fn sync(file_systems: &BTreeMap<u64, File>) -> Result<(), Reason> {
    for file in file_systems.values() {
        files::sync_file_system(file, Path::new("the target"))?;
    }
    Ok(())
}
