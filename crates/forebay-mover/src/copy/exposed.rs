//! Directories of the destination that another user can exchange while files are copied into them: those below a
//! directory in which other users may rename. Each is known by its inode, and nothing stays that was made in another one.
//! A file in such a directory costs two system calls more; others cost none.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_host::files::{self, Directory, Identity, Kind, Status, parent_of};
use forebay_host::users;
use parking_lot::{Mutex, RwLock};

use crate::copy::context::CopyContext;
use crate::model::item::Item;
use crate::model::reason::Reason;

/// Directories that are open at a time.
const OPEN_MAX: usize = 64;
const STICKY: u32 = 0o1000;
const WRITE_OF_OTHERS: u32 = 0o022;

/// What tells a directory from all others. Follows symbolic links.
pub(crate) fn identity(directory: &Path) -> Result<Identity, Reason> {
    Ok(Directory::open_path(directory)?.identity()?)
}

/// As [`identity`], for a directory that Forebay made, or was about to. A link of this user may have led nowhere then. One
/// of another user is in the place of the directory.
pub(crate) fn identity_of_made(directory: &Path) -> Result<Identity, Reason> {
    let found = files::status_of_name(directory)?;
    match found.kind {
        Kind::Directory => identity(directory),
        Kind::Link if found.owner == users::user_id() => identity(directory),
        _ => Err(directory_replaced(directory)),
    }
}

/// Whether users other than this one and root may rename what is in a directory.
fn is_shared(directory: &Status) -> bool {
    let is_of_another = directory.owner != users::user_id() && directory.owner != 0;
    is_of_another || (directory.mode & WRITE_OF_OTHERS != 0 && directory.mode & STICKY == 0)
}

/// Why a directory is not used any more.
pub(crate) fn directory_replaced(directory: &Path) -> Reason {
    Reason {
        errno: Some(libc::ESTALE),
        ..Reason::new(
            &format!("{} was exchanged while it was staged", files::printable(directory)),
            "choose a target in which no other user may rename, and stage again",
        )
    }
}

/// The directories above the current one of a plan, which has parents before children.
#[derive(Default)]
pub(crate) struct AncestorDirectories(Vec<(PathBuf, bool)>);

impl AncestorDirectories {
    /// Whether others can exchange this directory; its status, if it exists, decides about those below it.
    pub(crate) fn enter(&mut self, directory: &Path, existing: Option<&Status>) -> bool {
        while self.0.last().is_some_and(|(above, _)| !directory.starts_with(above)) {
            self.0.pop();
        }
        let is_exposed = match self.0.last() {
            Some((_, true)) => true,
            Some((above, false)) if Some(above.as_path()) == directory.parent() => false,
            _ => is_below_shared(directory),
        };
        let is_below_exposed = is_exposed || existing.is_some_and(is_shared);
        self.0.push((directory.to_owned(), is_below_exposed));
        is_exposed
    }
}

/// Whether others may rename a directory above this one.
fn is_below_shared(directory: &Path) -> bool {
    let parent = parent_of(directory);
    let real = files::final_path(parent).unwrap_or_else(|_| parent.to_owned());
    real.ancestors().filter_map(|above| files::status(above).ok()).any(|above| is_shared(&above))
}

/// What is known of the directories that others can exchange, by their numbers in the journal.
#[derive(Default)]
pub(crate) struct ExposedDirectories {
    identities: RwLock<HashMap<i64, Identity>>,
    /// Those that a batch makes.
    leaves: HashSet<i64>,
    opened: Mutex<HashMap<PathBuf, Arc<Directory>>>,
}

impl ExposedDirectories {
    pub(crate) fn of(identities: HashMap<i64, Identity>, leaves: HashSet<i64>) -> Self {
        Self { identities: RwLock::new(identities), leaves, ..Self::default() }
    }
}

impl CopyContext<'_> {
    /// Notes the inode of a directory that a batch has made, if others can exchange it.
    pub(crate) fn identify_leaf(&self, directory: i64, path: &Path) -> Result<(), Reason> {
        let exposed = &self.directories.exposed;
        if exposed.leaves.contains(&directory) {
            exposed.identities.write().insert(directory, identity_of_made(path)?);
        }
        Ok(())
    }

    /// Checks that a file which was made by this path is in the item's directory. Removes it elsewhere.
    pub(crate) fn check_made(&self, item: &Item, path: &Path, file: &File) -> Result<(), Reason> {
        self.check_here(item, path, file).inspect_err(|_| {
            if let Ok(elsewhere) = files::path_of(file) {
                self.remove_best_effort(&elsewhere);
            }
        })
    }

    /// Checks that a file which was opened by this path is in the item's directory.
    pub(crate) fn check_here(&self, item: &Item, path: &Path, file: &File) -> Result<(), Reason> {
        let Some(directory) = self.exposed_directory(item, path)? else {
            return Ok(());
        };
        let (opened, name) =
            (files::identity_of(file, path)?, path.file_name().unwrap_or_default());
        match directory.identity_of_name(name) {
            Ok(found) if found == opened => Ok(()),
            _ => Err(self.set_replaced(item, parent_of(path))),
        }
    }

    /// Checks that a name which was made by its path is in the item's directory. Removes it elsewhere.
    pub(crate) fn check_made_name(
        &self,
        item: &Item,
        path: &Path,
        is_link: bool,
    ) -> Result<(), Reason> {
        let Some(directory) = self.exposed_directory(item, path)? else {
            return Ok(());
        };
        match directory.identity_of_name(path.file_name().unwrap_or_default()) {
            Ok(found) if found.is_link == is_link => Ok(()),
            _ => {
                self.remove_best_effort(path);
                Err(self.set_replaced(item, parent_of(path)))
            }
        }
    }

    /// Nothing more is copied into the directory.
    fn set_replaced(&self, item: &Item, directory: &Path) -> Reason {
        let reason = directory_replaced(directory);
        self.directories.failed.write().insert(item.directory, reason.clone());
        reason
    }

    /// Checks that an open directory is the one that was staged into.
    pub(crate) fn check_directory_itself(
        &self,
        id: i64,
        opened: &File,
        path: &Path,
    ) -> Result<(), Reason> {
        match self.directories.exposed.identities.read().get(&id) {
            Some(identity) if files::identity_of(opened, path)? != *identity => {
                Err(directory_replaced(path))
            }
            _ => Ok(()),
        }
    }

    /// The directory of a path of an item; none if nobody else can exchange it.
    fn exposed_directory(
        &self,
        item: &Item,
        path: &Path,
    ) -> Result<Option<Arc<Directory>>, Reason> {
        let exposed = &self.directories.exposed;
        let Some(identity) = exposed.identities.read().get(&item.directory).copied() else {
            return Ok(None);
        };
        let parent = parent_of(path);
        let mut opened = exposed.opened.lock();
        if let Some(directory) = opened.get(parent) {
            return Ok(Some(Arc::clone(directory)));
        }
        let directory = Arc::new(Directory::open_path(parent)?);
        if directory.identity()? != identity {
            return Err(self.set_replaced(item, parent));
        }
        if opened.len() == OPEN_MAX {
            opened.clear();
        }
        opened.insert(parent.to_owned(), Arc::clone(&directory));
        Ok(Some(directory))
    }
}
