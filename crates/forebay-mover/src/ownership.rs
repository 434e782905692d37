//! Owner and group of copies: root keeps both, other users keep groups they belong to. In a directory
//! with the bit S_ISGID, their copies have its group.

use std::path::Path;

use forebay_host::files::{self, Kind, Status, parent_of};
use forebay_host::users;

/// `S_ISUID` and `S_ISGID`.
const SET_USER: u32 = 0o4000;
const SET_GROUP: u32 = 0o2000;

/// The owners and groups that this process can set.
pub(crate) struct Owner {
    is_root: bool,
    groups: Vec<u32>,
}

impl Owner {
    pub(crate) fn of_ours() -> Self {
        Self { is_root: users::is_root(), groups: users::groups() }
    }

    /// Does the destination have the owner and group that Forebay would set?
    pub(crate) fn matches(&self, status: &Status, existing: &Status) -> bool {
        self.owner_to_set(status).is_none_or(|(owner, group)| {
            owner.is_none_or(|owner| owner == existing.owner)
                && group.is_none_or(|group| group == existing.group)
        })
    }

    /// Does the target have its group from a directory that gives its own to everything in it (S_ISGID)?
    /// A group that shares the directory must not lose the copy.
    pub(crate) fn keeps_group_of_directory(&self, target: &Path) -> bool {
        let directory = files::status(parent_of(target));
        !self.is_root && directory.is_ok_and(|found| found.mode & SET_GROUP != 0)
    }

    /// The mode of a copy whose owner and group are set. A new directory has the bit S_ISGID from its own directory. A
    /// program of another user or group must not run with the rights of the copy's.
    pub(crate) fn mode_of_copy(&self, status: &Status, existing: &Status) -> u32 {
        if existing.kind == Kind::Directory {
            return status.mode | if self.is_root { 0 } else { existing.mode & SET_GROUP };
        }
        let other_owner = if existing.owner == status.owner { 0 } else { SET_USER };
        let other_group = if existing.group == status.group { 0 } else { SET_GROUP };
        status.mode & !(other_owner | other_group)
    }

    /// Does the mode of a source depend on who owns the copy?
    pub(crate) fn mode_needs_owner(status: &Status) -> bool {
        status.mode & (SET_USER | SET_GROUP) != 0
    }

    /// Owner and group to set; `None` if this process may set neither.
    pub(crate) fn owner_to_set(&self, status: &Status) -> Option<(Option<u32>, Option<u32>)> {
        if self.is_root {
            return Some((Some(status.owner), Some(status.group)));
        }
        self.groups.contains(&status.group).then_some((None, Some(status.group)))
    }
}
