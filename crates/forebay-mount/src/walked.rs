//! Directories that paths lead through. From the second look on, only the kind, the mode and the owner of such a one are
//! asked for: the kernel asks again for attributes that a program wants. Times and sizes would cost a request to the
//! metadata server, for which all nodes that make names in the directory give up what they may do there.

use std::collections::HashMap;
use std::ffi::{CStr, CString};

use forebay_ceph::Attributes;
use parking_lot::Mutex;

/// Names at most. Beyond that all are forgotten.
const NAMES_MAX: usize = 4096;

/// Names that were directories when they were last looked up, each with the node of its parent, and their attributes then. A
/// wrong one costs a request, and nothing else.
#[derive(Default)]
pub(crate) struct WalkedDirectories(Mutex<HashMap<(u64, CString), Attributes>>);

impl WalkedDirectories {
    pub(crate) fn find(&self, parent: u64, name: &CStr) -> Option<Attributes> {
        self.0.lock().get(&(parent, name.to_owned())).copied()
    }

    /// Remembers a name if it is a directory, else forgets it.
    pub(crate) fn note(&self, parent: u64, name: &CStr, found: &Attributes) {
        let mut names = self.0.lock();
        if !found.is_directory() {
            names.remove(&(parent, name.to_owned()));
            return;
        }
        if names.len() >= NAMES_MAX {
            names.clear();
        }
        names.insert((parent, name.to_owned()), *found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_are_remembered_and_not_too_many() {
        let walked = WalkedDirectories::default();
        let of = |mode: u32| Attributes { mode: mode as u16, ino: 7, ..Attributes::default() };
        walked.note(1, c"a", &of(libc::S_IFREG));
        assert!(walked.find(1, c"a").is_none());
        walked.note(1, c"a", &of(libc::S_IFDIR));
        assert_eq!(walked.find(1, c"a").map(|found| found.ino), Some(7));
        assert!(walked.find(2, c"a").is_none());
        walked.note(1, c"a", &of(libc::S_IFREG));
        assert!(walked.find(1, c"a").is_none());
        for parent in 0..=NAMES_MAX as u64 {
            walked.note(parent, c"d", &of(libc::S_IFDIR));
        }
        assert_eq!(walked.0.lock().len(), 1);
    }
}
