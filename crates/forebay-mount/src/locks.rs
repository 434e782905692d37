//! Locks of files on all nodes: which processes have some, and which wait for one.
//!
//! A process that waits is put into a queue, and the lock is tried again and again: a wait inside libcephfs could not be
//! interrupted.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_host::{clock, threads};
use parking_lot::{Condvar, Mutex};

use crate::error::Errno;
use crate::open_file::File;
use crate::ranges::{FLOCK_BYTE, byte_lock};
use crate::reply::{Outcome, Reply, Result};

/// Between two tries for a lock: at first, and at most.
pub(crate) const INTERVAL_MIN: Duration = Duration::from_millis(1);
const INTERVAL_MAX: Duration = Duration::from_millis(16);
/// Interrupts that came before the request that they are about was seen.
const EARLY_MAX: usize = 64;

/// The locks of this node's processes, and those that wait for one.
#[derive(Default)]
pub(crate) struct Locks {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Owners of fcntl locks, with the inode.
    owners: HashSet<(u64, u64)>,
    waiting: Vec<Waiting>,
    /// Numbers of interrupted requests.
    early: Vec<u64>,
    /// Whether the thread that tries again runs.
    has_thread: bool,
}

/// A process that waits for a lock.
struct Waiting {
    wanted: LockRequest,
    reply: Reply,
    interval: Duration,
    next: Instant,
    /// The lock is being tried for. Then the result decides, even after an interrupt.
    is_tried: bool,
    is_interrupted: bool,
}

/// A lock that a process wants, or wants to give back.
#[derive(Clone)]
pub(crate) struct LockRequest {
    pub(crate) file: Arc<File>,
    pub(crate) lock: libc::flock,
    pub(crate) owner: u64,
    pub(crate) is_flock: bool,
}

impl LockRequest {
    pub(crate) fn is_unlock(&self) -> bool {
        self.lock.l_type == libc::F_UNLCK as i16
    }

    pub(crate) fn try_now(&self) -> Result<()> {
        self.file.set_lock(&self.lock, self.owner, false)
    }

    /// As flock(2) says, an old lock is given back before a new one is waited for.
    pub(crate) fn give_back_flock(&self) -> Result<()> {
        self.file.set_lock(&byte_lock(libc::F_UNLCK, FLOCK_BYTE), self.owner, false)
    }
}

impl Locks {
    /// A process gives back its fcntl locks of an inode. False if it has none.
    pub(crate) fn remove_owner(&self, node: u64, owner: u64) -> bool {
        self.state.lock().owners.remove(&(node, owner))
    }

    /// Lets those who wait for a lock of this inode try again at once.
    pub(crate) fn look_again(&self, node: u64) {
        let mut state = self.state.lock();
        let now = clock::now();
        for waiting in state.waiting.iter_mut().filter(|one| one.wanted.file.node == node) {
            (waiting.next, waiting.interval) = (now, INTERVAL_MIN);
        }
        self.changed.notify_one();
    }

    pub(crate) fn note_owner(&self, wanted: &LockRequest) {
        if !wanted.is_flock && !wanted.is_unlock() {
            wanted.file.note_lock();
            self.state.lock().owners.insert((wanted.file.node, wanted.owner));
        }
    }

    /// Ends the wait of a request, or of one that comes.
    pub(crate) fn interrupt(&self, unique: u64) {
        let mut state = self.state.lock();
        match state.waiting.iter().position(|one| one.reply.unique == unique) {
            Some(at) if state.waiting[at].is_tried => state.waiting[at].is_interrupted = true,
            Some(at) => {
                let waiting = state.waiting.swap_remove(at);
                drop(state);
                waiting.reply.send(&Err(Errno(libc::EINTR)), &[]);
            }
            None => {
                if state.early.len() == EARLY_MAX {
                    state.early.remove(0);
                }
                state.early.push(unique);
            }
        }
    }

    /// Lets a request wait. The thread that tries again answers it.
    pub(crate) fn wait(self: &Arc<Self>, wanted: LockRequest, reply: Reply) -> Result {
        let mut state = self.state.lock();
        if state.early.contains(&reply.unique) {
            return Err(Errno(libc::EINTR));
        }
        let next = clock::now() + INTERVAL_MIN;
        let (is_tried, is_interrupted) = (false, false);
        let interval = INTERVAL_MIN;
        state.waiting.push(Waiting { wanted, reply, interval, next, is_tried, is_interrupted });
        if !state.has_thread {
            let locks = Arc::clone(self);
            if threads::spawn(move || locks.try_all()).is_err() {
                state.waiting.pop();
                return Err(Errno(libc::ENOLCK));
            }
            state.has_thread = true;
        }
        self.changed.notify_one();
        Ok(Outcome::NoReply)
    }

    /// Tries for all who wait, until nobody does.
    fn try_all(&self) {
        loop {
            let mut state = self.state.lock();
            let first = state.waiting.iter().enumerate().min_by_key(|(_, one)| one.next);
            let Some((at, next)) = first.map(|(at, one)| (at, one.next)) else {
                state.has_thread = false;
                return;
            };
            if next > clock::now() {
                self.changed.wait_until(&mut state, next);
                continue;
            }
            let waiting = &mut state.waiting[at];
            waiting.is_tried = true;
            let (wanted, unique) = (waiting.wanted.clone(), waiting.reply.unique);
            drop(state);
            let tried = wanted.try_now();
            self.reply_or_retry(unique, &wanted, tried);
        }
    }

    /// Answers who waited, or lets it wait on.
    fn reply_or_retry(&self, unique: u64, wanted: &LockRequest, tried: Result<()>) {
        let mut state = self.state.lock();
        let count = u32::try_from(state.waiting.len()).unwrap_or(u32::MAX);
        let Some(at) = state.waiting.iter().position(|one| one.reply.unique == unique) else {
            return; // it is there as long as its lock is tried for
        };
        let waiting = &mut state.waiting[at];
        let tried = match tried {
            Err(Errno(libc::EAGAIN)) if waiting.is_interrupted => Err(Errno(libc::EINTR)),
            Err(Errno(libc::EAGAIN)) => {
                // Many who wait share the rate of tries.
                let interval_max = INTERVAL_MAX.max(INTERVAL_MIN * count);
                waiting.is_tried = false;
                waiting.interval = (waiting.interval * 2).min(interval_max);
                waiting.next = clock::now() + waiting.interval;
                return;
            }
            tried => tried,
        };
        let waiting = state.waiting.swap_remove(at);
        drop(state);
        if tried.is_ok() {
            self.note_owner(wanted);
        }
        waiting.reply.send(&tried.map(|()| Outcome::Empty), &[]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_gives_back_its_locks_once() {
        let locks = Locks::default();
        locks.state.lock().owners.insert((1, 2));
        assert!(!locks.remove_owner(1, 3));
        assert!(locks.remove_owner(1, 2));
        assert!(!locks.remove_owner(1, 2));
    }

    #[test]
    fn early_interrupts_are_kept_for_the_requests_that_come() {
        let locks = Locks::default();
        (0..100).for_each(|unique| locks.interrupt(unique));
        let early = locks.state.lock().early.clone();
        assert_eq!((early.len(), early.first(), early.last()), (EARLY_MAX, Some(&36), Some(&99)));
    }
}
