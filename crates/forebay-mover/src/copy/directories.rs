//! Creates directories before their contents, and sets their modes and times afterwards.
//! A directory that a run finds keeps its mode and owner, unless an earlier run created it.
//! As root, refuses the directories of a tree behind a symbolic link of another user.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use forebay_host::files::{Identity, Kind, Status, parent_of};
use forebay_host::{files, filesystem, users};

use crate::copy::context::CopyContext;
use crate::copy::exposed::{AncestorDirectories, directory_replaced, identity, identity_of_made};
use crate::error::Error;
use crate::journal::database::Journal;
use crate::model::item::{Directory, Item};
use crate::model::reason::Reason;
use crate::model::state::State;
use crate::stop::Stop;

const ROWS: usize = 4096;

/// Mode of a directory while it is filled. A stricter existing mode is extended by these bits.
pub(crate) const FILLED: u32 = 0o700;

/// What became of the directories of a plan.
#[derive(Default)]
pub(crate) struct MadeDirectories {
    /// Those that nobody else has put anything into.
    pub(crate) fresh: HashSet<i64>,
    /// Those that failed: nothing is copied into them, since they would not be as private as their source.
    pub(crate) failed: HashMap<i64, Reason>,
    /// Those that other users can exchange, but for leaves.
    pub(crate) identities: HashMap<i64, Identity>,
    /// Leaves that other users can exchange.
    pub(crate) exposed_leaves: HashSet<i64>,
    failed_targets: HashMap<PathBuf, Reason>,
}

impl MadeDirectories {
    fn fail(
        &mut self,
        journal: &Journal,
        (id, target): (i64, PathBuf),
        reason: Reason,
    ) -> Result<(), Error> {
        journal.record_directory_failed(id, &reason)?;
        self.failed.insert(id, reason.clone());
        self.failed_targets.insert(target, reason);
        Ok(())
    }

    /// The status of a directory; none if it is missing.
    fn status(&self, target: &Path) -> Result<Option<Status>, Reason> {
        match target.ancestors().find_map(|above| self.failed_targets.get(above)) {
            Some(reason) => Err(reason.clone()),
            None => directory_status(target),
        }
    }

    /// Makes a missing directory.
    fn create(&mut self, directory: &Directory, is_exposed: bool) -> Result<(), Reason> {
        if create_one(&directory.target)? {
            self.fresh.insert(directory.id);
        }
        if is_exposed {
            self.identities.insert(directory.id, identity_of_made(&directory.target)?);
        }
        Ok(())
    }
}

/// Makes the directories that are missing, open to us alone while they are filled; but for these leaves, which whoever
/// fills them makes. One that was there keeps its mode; one that we have made before is opened again.
pub(crate) fn make(
    journal: &Journal,
    stop: &Stop,
    leaves: &BTreeMap<i64, u64>,
) -> Result<MadeDirectories, Error> {
    let mut made = MadeDirectories::default();
    let mut above = AncestorDirectories::default();
    let mut last = 0;
    loop {
        let found = journal.directories_after(last, ROWS)?;
        let Some(end) = found.last() else {
            return Ok(made);
        };
        last = end.id;
        let (mut missing, mut there, mut ours) = (Vec::new(), Vec::new(), Vec::new());
        for directory in found {
            if stop.is_asked() {
                break;
            }
            let found = match made.status(&directory.target) {
                Ok(found) => found,
                Err(reason) => {
                    made.fail(journal, (directory.id, directory.target), reason)?;
                    continue;
                }
            };
            let is_exposed = above.enter(&directory.target, found.as_ref());
            if found.is_none() {
                missing.push((directory, is_exposed));
                continue;
            }
            if is_exposed && let Ok(identity) = identity(&directory.target) {
                made.identities.insert(directory.id, identity);
            }
            match directory.is_begun {
                true => ours.push((directory.id, directory.target)),
                false => there.push(directory.id),
            }
        }
        // Before they are created: a restart after a kill must know that Forebay created them.
        let ids: Vec<_> = missing.iter().map(|(directory, _)| directory.id).collect();
        journal.set_directory_state(&ids, State::Copying)?;
        journal.set_directory_state(&there, State::Placed)?;
        ours.extend(journal.reopen_parents(missing.iter().map(|(directory, _)| directory))?);
        for (id, target) in ours {
            let is_replaced =
                made.identities.contains_key(&id) && identity_of_made(&target).is_err();
            let opened = if is_replaced {
                Err(directory_replaced(&target))
            } else {
                restore_write_access(&target)
            };
            if let Err(reason) = opened {
                made.fail(journal, (id, target), reason)?;
            }
        }
        for (directory, is_exposed) in missing {
            if leaves.contains_key(&directory.id) {
                made.fresh.insert(directory.id);
                made.exposed_leaves.extend(is_exposed.then_some(directory.id));
            } else if let Err(reason) = made.create(&directory, is_exposed) {
                made.fail(journal, (directory.id, directory.target), reason)?;
            }
        }
    }
}

/// Does the directory exist? Fails if something else has its name.
pub(crate) fn directory_exists(target: &Path) -> Result<bool, Reason> {
    directory_status(target).map(|found| found.is_some())
}

fn directory_status(target: &Path) -> Result<Option<Status>, Reason> {
    refuse_links_as_root(target)?;
    match files::status(target) {
        Ok(status) if status.kind == Kind::Directory => Ok(Some(status)),
        Err(error) if error.is_not_found() => Ok(None),
        Ok(_) => Err(Reason {
            errno: Some(libc::ENOTDIR),
            ..Reason::new(
                "it is in the way: not a directory",
                "move it away or choose another target",
            )
        }),
        Err(error) => Err(error.into()),
    }
}

/// Refuses a path of root's staging that a link of another user leads elsewhere: to files that the user may not write.
/// Another user's staging follows links, with the rights of that user.
pub(crate) fn refuse_links_as_root(target: &Path) -> Result<(), Reason> {
    if !users::is_root() {
        return Ok(());
    }
    for path in target.ancestors() {
        match files::status_of_name(path) {
            Ok(found) if found.kind == Kind::Link && found.owner != 0 => {
                let (path, owner) = (files::printable(path), users::user_named(found.owner));
                return Err(Reason {
                    errno: Some(libc::EACCES),
                    ..Reason::new(
                        &format!(
                            "{path} is a symbolic link of {owner}, which root does not follow"
                        ),
                        "name the directory that it leads to",
                    )
                });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Why root does not write below this path, if a link of another user leads elsewhere; none for other users.
pub fn refused_link(target: &Path) -> Option<String> {
    refuse_links_as_root(target).err().map(|reason| reason.text)
}

/// Gives the owner access to a directory that Forebay created and whose mode may be final already.
pub(crate) fn restore_write_access(target: &Path) -> Result<(), Reason> {
    let Status { kind, mode, .. } = files::status_of_name(target)?; // do not follow a link
    if kind == Kind::Directory && mode & FILLED != FILLED {
        files::set_mode_of_name(target, mode | FILLED)?;
    }
    Ok(())
}

/// Creates a directory. Returns false if it exists already.
pub(crate) fn create_one(target: &Path) -> Result<bool, Reason> {
    let made = match files::make_directory(target, FILLED) {
        Err(error) if error.is_not_found() => {
            if let Some(parent) = target.parent() {
                files::sync_names(&files::make_directories(parent, 0o777)?)?;
            }
            files::make_directory(target, FILLED)
        }
        made => made,
    };
    match made {
        Err(error) if error.already_exists() => directory_exists(target).map(|_| false),
        made => Ok(made.map(|()| true)?),
    }
}

impl CopyContext<'_> {
    /// Checks that the directory of an item was made, or was there; as root, for each item, since its owner can exchange
    /// it at any time.
    pub(crate) fn check_directory(&self, item: &Item) -> Result<(), Reason> {
        if let Some(why) = self.directories.failed.read().get(&item.directory) {
            return Err(why.clone());
        }
        refuse_links_as_root(parent_of(&item.target))
    }

    /// Gives the directories that were made their modes and times, children before parents. Whoever asks to stop
    /// waits for one portion of them.
    pub(crate) fn finish_directories(&self) -> Result<(), Error> {
        let mut last = i64::MAX;
        loop {
            let found = self.journal.directories_made_before(last, ROWS)?;
            let Some(end) = found.last() else {
                return Ok(());
            };
            last = end.id;
            let mut finished = Vec::new();
            let mut synced = None;
            for directory in found {
                match self.finish_directory(&directory) {
                    Ok(target) => {
                        finished.push(directory.id);
                        synced = Some((target, directory.target));
                    }
                    Err(reason) => self.journal.record_directory_failed(directory.id, &reason)?,
                }
            }
            // One sync for all: trees seldom cross file systems, and the names are synced already. On FUSE, each is synced.
            if let Some((target, path)) = synced.filter(|_| self.options.syncs())
                && let Err(error) = files::sync_file_system(&target, &path)
            {
                let reason = Reason::from(error);
                for id in finished.drain(..) {
                    self.journal.record_directory_failed(id, &reason)?;
                }
            }
            self.journal.set_directory_state(&finished, State::Placed)?;
            if self.is_stopped() {
                return Ok(());
            }
        }
    }

    fn finish_directory(&self, directory: &Directory) -> Result<std::fs::File, Reason> {
        let target = files::open_directory(&directory.target, true)?;
        self.check_directory_itself(directory.id, &target, &directory.target)?;
        refuse_links_as_root(parent_of(&directory.target))?;
        let source = files::open_directory(&directory.source, true)?;
        let status = files::status_of(&source, &directory.source)?;
        let paths = (directory.source.as_path(), directory.target.as_path());
        self.copy_metadata(&source, &target, paths, &status)?;
        if self.options.syncs() && filesystem::is_fuse(&target, &directory.target)? {
            files::with_path(target.sync_all(), "sync", &directory.target)?;
            files::sync_directory(parent_of(&directory.target))?;
        }
        Ok(target)
    }
}
