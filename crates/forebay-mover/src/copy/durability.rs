//! Syncs files one by one, or a whole batch by file system.
//! Assumes that all files of a directory are on one file system. A sync of a file system also waits for the data of
//! other processes, so a small batch never does that.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use forebay_host::files::{self, parent_of};

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
    /// One open file or directory by device, and the directories whose file system is known.
    Together(BTreeMap<u64, File>, BTreeSet<i64>),
}

impl Syncing {
    pub(crate) fn of(is_durable: bool, files: usize) -> Self {
        match (is_durable, files < GROUP_SYNC_MIN) {
            (false, _) => Self::Not,
            (true, true) => Self::Each,
            (true, false) => Self::Together(BTreeMap::new(), BTreeSet::new()),
        }
    }

    /// Registers or syncs a written file.
    pub(crate) fn written(&mut self, item: &Item, file: File) -> Result<(), Reason> {
        match self {
            Self::Not => {}
            Self::Each => files::with_path(file.sync_all(), "sync", &item.target)?,
            Self::Together(file_systems, known) => {
                if known.insert(item.directory) {
                    let status = files::status_of(&file, &item.target)?;
                    file_systems.entry(status.device).or_insert(file);
                }
            }
        }
        Ok(())
    }

    /// Registers or syncs an unchanged file or link. The program that wrote it may not have synced it.
    pub(crate) fn there(&mut self, item: &Item) -> Result<(), Reason> {
        let is_known = match self {
            Self::Not => true,
            Self::Each => item.kind == LINK,
            Self::Together(_, known) => known.contains(&item.directory),
        };
        if is_known {
            return Ok(());
        }
        let path = if item.kind == LINK { parent_of(&item.target) } else { &item.target };
        self.written(item, files::open_source(path, true)?)
    }

    /// Makes new names in these directories survive a power failure, if they are not synced yet.
    pub(crate) fn finish<'a>(&self, targets: impl Iterator<Item = &'a Path>) -> Result<(), Reason> {
        match self {
            Self::Not => {}
            Self::Together(file_systems, _) => self::sync(file_systems)?,
            Self::Each => {
                let directories: BTreeSet<_> = targets.filter_map(Path::parent).collect();
                for directory in directories {
                    files::sync_directory(directory)?;
                }
            }
        }
        Ok(())
    }
}

pub(crate) fn sync(file_systems: &BTreeMap<u64, File>) -> Result<(), Reason> {
    for file in file_systems.values() {
        files::sync_file_system(file, Path::new("the target"))?;
    }
    Ok(())
}
