//! Files that another node renames while a thread looks up the two names of a rename. The kernel looks up the old name and
//! then the new one. If both are the same file, it takes them for two links of it, and reports a rename that was never
//! asked for: two nodes would have renamed one file. The second look fails with ESTALE once, and the kernel looks again.

use std::collections::HashMap;
use std::ffi::{CStr, CString};

use forebay_ceph::Attributes;
use parking_lot::Mutex;

/// Threads at most whose last look is known. Beyond that all are forgotten.
const THREADS_MAX: usize = 4096;

/// A file and the name that it had: its inode number, the parent's node, and the name.
type Look = (u64, u64, CString);

/// The file that each thread looked up last.
#[derive(Default)]
pub(crate) struct LastLookups(Mutex<HashMap<u32, Look>>);

impl LastLookups {
    /// Notes what a thread finds; none if there is no file. Returns whether it found the file, which has one name, under
    /// another one just before.
    pub(crate) fn note(
        &self,
        thread: u32,
        (parent, name): (u64, &CStr),
        found: Option<&Attributes>,
    ) -> bool {
        let mut threads = self.0.lock();
        let Some(found) = found.filter(|found| !found.is_directory() && found.nlink == 1) else {
            threads.remove(&thread);
            return false;
        };
        if threads.len() >= THREADS_MAX {
            threads.clear();
        }
        let before = threads.insert(thread, (found.ino, parent, name.to_owned()));
        before.is_some_and(|(ino, at, known)| {
            ino == found.ino && (at != parent || known.as_c_str() != name)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: (u64, &CStr) = (8, c"old");
    const NEW: (u64, &CStr) = (16, c"new");

    fn file(nlink: u32) -> Attributes {
        Attributes { mode: libc::S_IFREG as u16, ino: 7, nlink, ..Attributes::default() }
    }

    #[test]
    fn file_that_a_thread_finds_under_another_name_has_moved_once() {
        let lookups = LastLookups::default();
        let found = |name| lookups.note(1, name, Some(&file(1)));
        assert_eq!([OLD, OLD, NEW, NEW, OLD].map(found), [false, false, true, false, true]);
        assert!(!lookups.note(2, NEW, Some(&file(1))), "another thread's look");
    }

    #[test]
    fn links_and_names_without_a_file_have_not_moved() {
        let lookups = LastLookups::default();
        lookups.note(1, OLD, Some(&file(2)));
        assert!(!lookups.note(1, NEW, Some(&file(2))));
        lookups.note(1, OLD, Some(&file(1)));
        lookups.note(1, NEW, None);
        assert!(!lookups.note(1, NEW, Some(&file(1))), "this thread renamed it");
        for thread in 0..=THREADS_MAX as u32 {
            lookups.note(thread, OLD, Some(&file(1)));
        }
        assert_eq!(lookups.0.lock().len(), 1);
    }
}
