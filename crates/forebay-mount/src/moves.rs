//! Directories that other nodes move. The kernel cannot rename such a directory as long as it knows its old place.
//!
//! A lookup gives the kernel a directory that it has under another name. It moves its own entry, for which it locks all
//! renames. A rename holds that lock while it looks up its names: it fails with ESTALE, looks them up once more, and
//! fails again. So the second lookup of the same thread, without a request about the directory in between, gives the
//! directory another number. The kernel takes it for another directory then.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use forebay_host::clock;
use parking_lot::Mutex;

use crate::protocol::ROOT;

/// The kernel's number of a directory is the address of its inode, a multiple of this, and 0 to 7 more.
const NUMBERS: u64 = 8;
/// The node of a number.
pub(crate) fn node_of(number: u64) -> u64 {
    if number == ROOT { ROOT } else { number - number % NUMBERS }
}

/// Directories at most whose place is known. Beyond that all are forgotten, and some rename fails.
const PLACES_MAX: usize = 4096;
/// The kernel looks up once more at once. Beyond that, another lookup is another operation.
const RETRY_MAX: Duration = Duration::from_secs(10);
/// Directories at most that the kernel may have refused.
const UNCONFIRMED_MAX: usize = 64;

/// A name in a directory, which the kernel's number stands for.
pub(crate) type Name<'a> = (u64, &'a CStr);

#[derive(Default)]
pub(crate) struct Moves {
    state: Mutex<State>,
    /// Whether there is an answer that the kernel may have refused.
    has_unconfirmed: AtomicBool,
}

/// By the inode number.
#[derive(Default)]
struct State {
    places: HashMap<u64, (u64, CString)>,
    numbers: HashMap<u64, u64>,
    unconfirmed: Vec<Answered>,
    /// The thread that got another number last, and when: it renames, and the kernel tries no third time.
    renaming: Option<(u32, Instant)>,
}

/// A directory at a new place, which the kernel may have refused.
struct Answered {
    ino: u64,
    node: u64,
    thread: u32,
    since: Instant,
}

impl State {
    /// Notes the place of a directory. Returns whether it was known at another one.
    fn put(&mut self, ino: u64, (parent, name): Name) -> bool {
        let known = self.places.get(&ino);
        if known.is_some_and(|(at, known)| *at == parent && known.as_c_str() == name) {
            return false;
        }
        let was_known = known.is_some();
        if self.places.len() >= PLACES_MAX {
            self.places.clear();
        }
        self.places.insert(ino, (parent, name.to_owned()));
        was_known
    }
}

impl Moves {
    /// Notes where the kernel has a directory: it made or moved it there by itself.
    pub(crate) fn note(&self, ino: u64, name: Name) {
        self.state.lock().put(ino, name);
    }

    /// The number, above its node, of a directory that a thread looks up.
    pub(crate) fn assign_number(&self, (ino, node): (u64, u64), name: Name, thread: u32) -> u64 {
        let mut state = self.state.lock();
        state.unconfirmed.retain(|one| one.since.elapsed() < RETRY_MAX);
        let is_same = |one: &Answered| one.ino == ino && one.thread == thread;
        let before = state.renaming.take_if(|(one, _)| *one == thread);
        let is_renaming = before.is_some_and(|(_, since)| since.elapsed() < RETRY_MAX);
        let has_moved = state.put(ino, name);
        if has_moved && !is_renaming {
            if state.unconfirmed.len() == UNCONFIRMED_MAX {
                state.unconfirmed.remove(0);
            }
            state.unconfirmed.push(Answered { ino, node, thread, since: clock::now() });
            self.has_unconfirmed.store(true, Ordering::SeqCst);
        } else if has_moved || state.unconfirmed.iter().any(is_same) {
            state.unconfirmed.retain(|one| !is_same(one));
            state.renaming = Some((thread, clock::now()));
            let number = state.numbers.entry(ino).or_default();
            *number = (*number + 1) % NUMBERS;
        }
        state.numbers.get(&ino).copied().unwrap_or_default()
    }

    /// The kernel uses a node: it has accepted it.
    pub(crate) fn confirm(&self, node: u64) {
        if !self.has_unconfirmed.load(Ordering::SeqCst) {
            return;
        }
        let mut state = self.state.lock();
        state.unconfirmed.retain(|one| one.node != node_of(node));
        self.has_unconfirmed.store(!state.unconfirmed.is_empty(), Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: Name = (800, c"old");
    const NEW: Name = (1600, c"new");

    fn number(moves: &Moves, name: Name, thread: u32) -> u64 {
        moves.assign_number((7, 80), name, thread)
    }

    #[test]
    fn second_lookup_of_a_thread_at_a_new_place_gives_another_number() {
        let moves = Moves::default();
        assert_eq!([OLD, OLD, NEW].map(|name| number(&moves, name, 1)), [0, 0, 0]);
        assert_eq!(number(&moves, NEW, 1), 1);
        assert_eq!(number(&moves, NEW, 1), 1, "once for each move");
        assert_eq!([OLD, OLD].map(|name| number(&moves, name, 1)), [1, 2]);
    }

    #[test]
    fn second_directory_of_a_rename_gets_another_number_at_once() {
        let moves = Moves::default();
        let of = |ino, name| moves.assign_number((ino, 8 * ino), name, 1);
        assert_eq!([7, 9].map(|ino| of(ino, OLD)), [0, 0]);
        assert_eq!([of(7, NEW), of(7, NEW), of(9, NEW)], [0, 1, 1]);
        assert_eq!(of(9, NEW), 1);
        assert_eq!([of(9, OLD), of(9, OLD)], [1, 2], "another operation");
    }

    #[test]
    fn directory_that_the_kernel_uses_or_moved_keeps_its_number() {
        let moves = Moves::default();
        moves.note(7, OLD);
        number(&moves, NEW, 1);
        assert_eq!(number(&moves, NEW, 2), 0, "another thread's lookup");
        moves.confirm(80 + 3);
        assert_eq!(number(&moves, NEW, 1), 0);
        moves.note(7, OLD);
        assert_eq!([OLD, OLD].map(|name| number(&moves, name, 1)), [0, 0]);
    }

    #[test]
    fn not_too_much_is_kept() {
        let moves = Moves::default();
        for ino in 0..=PLACES_MAX as u64 {
            moves.note(ino, OLD);
        }
        assert_eq!(moves.state.lock().places.len(), 1);
        for ino in 0..=UNCONFIRMED_MAX as u64 {
            moves.note(ino, OLD);
            moves.assign_number((ino, 8 * ino), NEW, 1);
        }
        assert_eq!(moves.state.lock().unconfirmed.len(), UNCONFIRMED_MAX);
    }
}
