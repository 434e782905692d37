//! Owner and group of copies: root keeps both, other users keep groups they belong to.

use forebay_host::files::Status;
use forebay_host::users;

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
    pub(crate) fn matches(&self, status: &Status, standing: &Status) -> bool {
        self.owner_to_set(status).is_none_or(|(owner, group)| {
            owner.is_none_or(|owner| owner == standing.owner)
                && group.is_none_or(|group| group == standing.group)
        })
    }

    /// Owner and group to set; `None` if this process may set neither.
    pub(crate) fn owner_to_set(&self, status: &Status) -> Option<(Option<u32>, Option<u32>)> {
        if self.is_root {
            return Some((Some(status.owner), Some(status.group)));
        }
        self.groups.contains(&status.group).then_some((None, Some(status.group)))
    }
}
