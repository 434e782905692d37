//! Files that another node renames while a thread looks up the two names of a rename. The kernel looks up the old name and
//! then the new one. If both are the same file, it takes them for two links of it, and reports a rename that was never
//! asked for: two nodes would have renamed one file. The second look fails with ESTALE once, and the kernel looks again.
//! Assumes that the count of names can be old: two names that are there are accepted when the kernel looks again.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::time::{Duration, Instant};

use forebay_ceph::Attributes;
use forebay_host::clock;
use parking_lot::Mutex;

/// Threads at most whose last look is known. Beyond that all are forgotten.
const THREADS_MAX: usize = 4096;

/// The longest pause between the two looks of a rename, where this process cannot see what the thread does. Another call
/// that makes a name is not repeated: its program would get ESTALE.
const PAUSE_MAX: Duration = Duration::from_millis(2);

/// A file and the name that it had: its inode number, the parent's node, the name, and when.
type Look = (u64, u64, CString, Instant);

/// The kernel looks again at once.
const RETRY_MAX: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(crate) struct LastLookups(Mutex<State>);

/// By the thread.
#[derive(Default)]
struct State {
    /// The file that it looked up last.
    looks: HashMap<u32, Look>,
    /// The file whose second name was refused, by its inode number, and when.
    refused: HashMap<u32, (u64, Instant)>,
}

impl LastLookups {
    /// Notes what a thread finds; none if there is no file. Returns whether to refuse it: the thread found the file, which
    /// has one name, under another one just before, and was not refused then.
    pub(crate) fn note(
        &self,
        thread: u32,
        (parent, name): (u64, &CStr),
        found: Option<&Attributes>,
        is_renaming: impl Fn(u32) -> Option<bool>,
    ) -> bool {
        let State { looks, refused } = &mut *self.0.lock();
        let before = looks.remove(&thread);
        let Some(found) = found.filter(|found| !found.is_directory() && found.nlink == 1) else {
            return false;
        };
        if looks.len().max(refused.len()) >= THREADS_MAX {
            looks.clear();
            refused.clear();
        }
        let has_moved = before.is_some_and(|(ino, at, known, since)| {
            ino == found.ino
                && (at != parent || known.as_c_str() != name)
                && is_renaming(thread).unwrap_or(since.elapsed() < PAUSE_MAX)
        });
        let looks_again =
            |(ino, since): (u64, Instant)| ino == found.ino && since.elapsed() < RETRY_MAX;
        if has_moved && !refused.remove(&thread).is_some_and(looks_again) {
            refused.insert(thread, (found.ino, clock::now()));
            return true;
        }
        looks.insert(thread, (found.ino, parent, name.to_owned(), clock::now()));
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: (u64, &CStr) = (8, c"old");
    const NEW: (u64, &CStr) = (16, c"new");

    fn note(
        lookups: &LastLookups,
        thread: u32,
        name: (u64, &CStr),
        found: Option<&Attributes>,
    ) -> bool {
        lookups.note(thread, name, found, |_| Some(true))
    }

    fn file(nlink: u32) -> Attributes {
        Attributes { mode: libc::S_IFREG as u16, ino: 7, nlink, ..Attributes::default() }
    }

    #[test]
    fn file_that_a_thread_finds_under_another_name_has_moved_once() {
        let lookups = LastLookups::default();
        let found = |name| note(&lookups, 1, name, Some(&file(1)));
        assert_eq!([OLD, OLD, NEW, NEW].map(found), [false, false, true, false]);
        assert!(!note(&lookups, 2, NEW, Some(&file(1))), "another thread's look");
    }

    #[test]
    fn two_names_that_are_there_are_accepted_when_the_kernel_looks_again() {
        let lookups = LastLookups::default();
        let found = |name| note(&lookups, 1, name, Some(&file(1)));
        assert_eq!([OLD, NEW, OLD, NEW].map(found), [false, true, false, false]);
        // With the directories of the paths in between.
        let other = LastLookups::default();
        let looks = [OLD, NEW].map(|name| note(&other, 1, name, Some(&file(1))));
        note(&other, 1, OLD, None);
        let again = [OLD, NEW].map(|name| note(&other, 1, name, Some(&file(1))));
        assert_eq!((looks, again), ([false, true], [false, false]));
    }

    #[test]
    fn call_that_is_no_rename_is_not_refused() {
        let lookups = LastLookups::default();
        let looks = [OLD, NEW].map(|name| lookups.note(1, name, Some(&file(1)), |_| Some(false)));
        assert_eq!(looks, [false, false]);
    }

    #[test]
    fn links_and_names_without_a_file_have_not_moved() {
        let lookups = LastLookups::default();
        note(&lookups, 1, OLD, Some(&file(2)));
        assert!(!note(&lookups, 1, NEW, Some(&file(2))));
        note(&lookups, 1, OLD, Some(&file(1)));
        note(&lookups, 1, NEW, None);
        assert!(!note(&lookups, 1, NEW, Some(&file(1))), "this thread renamed it");
        let lookups = LastLookups::default();
        for thread in 0..=THREADS_MAX as u32 {
            note(&lookups, thread, OLD, Some(&file(1)));
        }
        assert_eq!(lookups.0.lock().looks.len(), 1);
    }
}
