//! Directories that paths lead through. From the second look on, only the kind, the mode and the owner of such a one are
//! asked for: the kernel asks again for attributes that a program wants. Times and sizes would cost a request to the
//! metadata server, for which all nodes that make names in the directory give up what they may do there.

use std::collections::HashMap;
use std::ffi::{CStr, CString};

use forebay_ceph::Attributes;
use parking_lot::Mutex;

/// Names at most. Beyond that all are forgotten.
const NAMES_MAX: usize = 4096;
/// The numbers that a directory can have for the kernel: its node, which is a multiple of this, and so many more.
pub(crate) const NUMBERS: u64 = 8;

/// The node of the parent, and the name.
pub(crate) type Place = (u64, CString);

/// Names that were directories when they were last looked up. A wrong one costs a request, and nothing else.
#[derive(Default)]
pub(crate) struct WalkedDirectories(Mutex<Walked>);

#[derive(Default)]
struct Walked {
    names: HashMap<Place, WalkedDirectory>,
    /// Where each node was found last.
    places: HashMap<u64, Place>,
}

#[derive(Clone)]
pub(crate) struct WalkedDirectory {
    pub(crate) attributes: Attributes,
    /// What the kernel's number has besides the node, below [`NUMBERS`].
    pub(crate) number: u64,
    /// Where it was found before, said once. Another directory is not there now.
    pub(crate) moved_from: Option<Place>,
    node: u64,
}

impl WalkedDirectories {
    pub(crate) fn find(&self, parent: u64, name: &CStr) -> Option<WalkedDirectory> {
        let Walked { names, places } = &mut *self.0.lock();
        let place = (parent, name.to_owned());
        let known = names.get_mut(&place)?;
        let mut found = known.clone();
        known.moved_from = None;
        if places.get(&found.node).is_some_and(|last| *last != place) {
            known.moved_from = places.insert(found.node, place); // it came back
        }
        let is_free = |place: &Place| names.get(place).is_none_or(|there| there.node == found.node);
        found.moved_from = found.moved_from.filter(is_free);
        Some(found)
    }

    /// Remembers a name if it is a directory, else forgets it. Returns the number of the directory.
    pub(crate) fn note(&self, parent: u64, name: &CStr, node: u64, found: &Attributes) -> u64 {
        let mut walked = self.0.lock();
        let place = (parent, name.to_owned());
        if !found.is_directory() {
            walked.names.remove(&place);
            return 0;
        }
        if walked.names.len() >= NAMES_MAX {
            *walked = Walked::default();
        }
        let before = walked.places.insert(node, place.clone());
        let old = before.as_ref().and_then(|before| walked.names.get(before));
        let number = old.filter(|old| old.node == node).map_or(0, |old| old.number);
        let moved_from = before.filter(|before| *before != place);
        let noted = WalkedDirectory { attributes: *found, number, moved_from, node };
        walked.names.insert(place, noted);
        number
    }

    /// Gives a directory another number: the kernel takes it for another one then. Returns the number.
    pub(crate) fn renumber(&self, parent: u64, name: &CStr) -> u64 {
        let mut walked = self.0.lock();
        let Some(found) = walked.names.get_mut(&(parent, name.to_owned())) else { return 0 };
        found.number = (found.number + 1) % NUMBERS;
        found.number
    }

    /// Notes a rename of this node, which the kernel knows of.
    pub(crate) fn rename(
        &self,
        (parent, name): (u64, &CStr),
        (new_parent, new_name): (u64, &CStr),
    ) {
        let Walked { names, places } = &mut *self.0.lock();
        let place = (new_parent, new_name.to_owned());
        names.remove(&place);
        if let Some(moved) = names.remove(&(parent, name.to_owned())) {
            places.insert(moved.node, place.clone());
            names.insert(place, WalkedDirectory { moved_from: None, ..moved });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_are_remembered_and_not_too_many() {
        let walked = WalkedDirectories::default();
        let of = |mode: u32| Attributes { mode: mode as u16, ino: 7, ..Attributes::default() };
        walked.note(1, c"a", 5, &of(libc::S_IFREG));
        assert!(walked.find(1, c"a").is_none());
        walked.note(1, c"a", 5, &of(libc::S_IFDIR));
        assert_eq!(walked.find(1, c"a").map(|found| found.attributes.ino), Some(7));
        assert!(walked.find(2, c"a").is_none());
        walked.note(1, c"a", 5, &of(libc::S_IFREG));
        assert!(walked.find(1, c"a").is_none());
        for parent in 0..=NAMES_MAX as u64 {
            walked.note(parent, c"d", parent, &of(libc::S_IFDIR));
        }
        assert_eq!(walked.0.lock().names.len(), 1);
    }

    #[test]
    fn former_place_of_a_directory_that_moved_is_told_once() {
        let walked = WalkedDirectories::default();
        let directory = Attributes { mode: libc::S_IFDIR as u16, ..Attributes::default() };
        let moved_from = |name| walked.find(1, name).and_then(|found| found.moved_from);
        walked.note(1, c"a", 5, &directory);
        walked.note(1, c"a", 5, &directory);
        assert_eq!(moved_from(c"a"), None);
        walked.note(1, c"b", 5, &directory);
        assert_eq!(moved_from(c"b"), Some((1, c"a".to_owned())));
        assert_eq!(moved_from(c"b"), None);
        assert_eq!((moved_from(c"a"), moved_from(c"a")), (None, Some((1, c"b".to_owned()))));
        walked.rename((1, c"a"), (1, c"c")); // by this node
        walked.note(1, c"c", 5, &directory);
        assert_eq!(moved_from(c"c"), None);
        walked.note(1, c"d", 5, &directory);
        walked.note(1, c"c", 6, &directory);
        assert_eq!(moved_from(c"d"), None, "another one is there");
    }

    #[test]
    fn number_of_a_directory_goes_with_it() {
        let walked = WalkedDirectories::default();
        let directory = Attributes { mode: libc::S_IFDIR as u16, ..Attributes::default() };
        assert_eq!(walked.note(1, c"a", 8, &directory), 0);
        assert_eq!(walked.renumber(1, c"a"), 1);
        assert_eq!(walked.note(1, c"b", 8, &directory), 1);
        walked.rename((1, c"b"), (1, c"c"));
        assert_eq!(walked.find(1, c"c").map(|found| found.number), Some(1));
        let last = (2..=NUMBERS).map(|_| walked.renumber(1, c"c")).last();
        assert_eq!(last, Some(0));
    }
}
