//! Locks of files on all nodes: fcntl, flock, and the one of appends.
//!
//! libcephfs offers only byte-range locks by handle. The last bytes that a range can name stand for flock and for the
//! lock of appends: no file is so large, and ranges of processes end before them. A process that waits is put into a
//! queue, and the lock is tried again and again: a wait inside libcephfs could not be interrupted.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_host::{clock, threads};
use parking_lot::{Condvar, Mutex};

use crate::error::Failure;
use crate::opened::File;
use crate::protocol::{Answer, Request, SETLKW};
use crate::server::{Outcome, Result, Server};
use crate::session::Reply;

/// The byte whose lock is that of appends.
pub(crate) const APPEND_BYTE: i64 = i64::MAX - 1;
/// The byte whose lock is the flock of the file.
pub(crate) const FLOCK_BYTE: i64 = i64::MAX - 2;
/// The last byte that ranges of processes reach.
const LAST_BYTE: i64 = i64::MAX - 16;
/// `FUSE_LK_FLOCK`.
const IS_FLOCK: u32 = 1 << 0;
/// Between two tries for a lock: at first, and at most.
const INTERVAL_MIN: Duration = Duration::from_millis(1);
const INTERVAL_MAX: Duration = Duration::from_millis(16);
/// The kernel tells the end of an open file after close and exit have returned. So a flock that a process does not want
/// to wait for is tried this often within some 20 ms.
const FLOCK_TRIES: u32 = 4;
/// Interrupts that came before the request that they are about was seen.
const EARLY_MAX: usize = 64;

/// A lock of one byte.
pub(crate) fn byte_lock(kind: i32, byte: i64) -> libc::flock {
    lock(kind, byte, byte)
}

/// A lock of all bytes that processes can lock.
pub(crate) fn whole_lock(kind: i32) -> libc::flock {
    lock(kind, 0, LAST_BYTE)
}

fn lock(kind: i32, first: i64, last: i64) -> libc::flock {
    libc::flock {
        l_type: kind as i16,
        l_whence: libc::SEEK_SET as i16,
        l_start: first,
        l_len: last - first + 1,
        l_pid: 0,
    }
}

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
    is_served: bool,
}

/// A process that waits for a lock.
struct Waiting {
    wanted: Wanted,
    reply: Reply,
    interval: Duration,
    next: Instant,
    /// The lock is being tried for. Then the result decides, even after an interrupt.
    is_tried: bool,
    is_interrupted: bool,
}

/// A lock that a process wants, or wants to give back.
#[derive(Clone)]
struct Wanted {
    file: Arc<File>,
    lock: libc::flock,
    owner: u64,
    is_flock: bool,
}

impl Wanted {
    fn is_unlock(&self) -> bool {
        self.lock.l_type == libc::F_UNLCK as i16
    }

    fn try_now(&self) -> Result<()> {
        self.file.set_lock(&self.lock, self.owner, false)
    }

    /// As flock(2) says, an old lock is given back before a new one is waited for.
    fn give_back_flock(&self) -> Result<()> {
        self.file.set_lock(&byte_lock(libc::F_UNLCK, FLOCK_BYTE), self.owner, false)
    }
}

impl Locks {
    /// A process gives back its fcntl locks of an inode. False if it has none.
    pub(crate) fn end_of(&self, node: u64, owner: u64) -> bool {
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

    fn note_owner(&self, wanted: &Wanted) {
        if !wanted.is_flock && !wanted.is_unlock() {
            self.state.lock().owners.insert((wanted.file.node, wanted.owner));
        }
    }

    /// Ends the wait of a request, or of one that comes.
    fn interrupt(&self, unique: u64) {
        let mut state = self.state.lock();
        match state.waiting.iter().position(|one| one.reply.unique == unique) {
            Some(at) if state.waiting[at].is_tried => state.waiting[at].is_interrupted = true,
            Some(at) => {
                let waiting = state.waiting.swap_remove(at);
                drop(state);
                waiting.reply.send(&Err(Failure(libc::EINTR)), &[]);
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
    fn wait(self: &Arc<Self>, wanted: Wanted, reply: Reply) -> Result {
        let mut state = self.state.lock();
        if state.early.contains(&reply.unique) {
            return Err(Failure(libc::EINTR));
        }
        let next = clock::now() + INTERVAL_MIN;
        let (is_tried, is_interrupted) = (false, false);
        let interval = INTERVAL_MIN;
        state.waiting.push(Waiting { wanted, reply, interval, next, is_tried, is_interrupted });
        if !state.is_served {
            let locks = Arc::clone(self);
            if threads::spawn(move || locks.try_all()).is_err() {
                state.waiting.pop();
                return Err(Failure(libc::ENOLCK));
            }
            state.is_served = true;
        }
        self.changed.notify_one();
        Ok(Outcome::Silence)
    }

    /// Tries for all who wait, until nobody does.
    fn try_all(&self) {
        loop {
            let mut state = self.state.lock();
            let first = state.waiting.iter().enumerate().min_by_key(|(_, one)| one.next);
            let Some((at, next)) = first.map(|(at, one)| (at, one.next)) else {
                state.is_served = false;
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
            self.settle(unique, &wanted, tried);
        }
    }

    /// Answers who waited, or lets it wait on.
    fn settle(&self, unique: u64, wanted: &Wanted, tried: Result<()>) {
        let mut state = self.state.lock();
        let count = u32::try_from(state.waiting.len()).unwrap_or(u32::MAX);
        let Some(at) = state.waiting.iter().position(|one| one.reply.unique == unique) else {
            return; // it is there as long as its lock is tried for
        };
        let waiting = &mut state.waiting[at];
        let tried = match tried {
            Err(Failure(libc::EAGAIN)) if waiting.is_interrupted => Err(Failure(libc::EINTR)),
            Err(Failure(libc::EAGAIN)) => {
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

impl Server {
    /// The request's lock; the range of a process ends before the bytes of this client.
    fn wanted(&self, request: &mut Request) -> Result<Wanted> {
        let body = &mut request.body;
        let (file, owner) = (body.u64()?, body.u64()?);
        let (start, end) = (body.i64()?, body.i64()?);
        let (kind, _) = (body.u32()?.cast_signed(), body.u32()?);
        let is_flock = body.u32()? & IS_FLOCK != 0;
        let file = self.files.get(file)?;
        if is_flock {
            let lock = byte_lock(kind, FLOCK_BYTE);
            return Ok(Wanted { file, lock, owner, is_flock });
        }
        if start > LAST_BYTE {
            return Err(Failure(libc::EOVERFLOW));
        }
        let lock = lock(kind, start, end.min(LAST_BYTE));
        Ok(Wanted { file, lock, owner, is_flock })
    }

    pub(crate) fn lock_holder(&self, request: &mut Request) -> Result {
        let wanted = self.wanted(request)?;
        let found = wanted.file.lock_holder(&wanted.lock, wanted.owner)?;
        let last = found.l_start.saturating_add(found.l_len.max(1) - 1);
        let is_to_the_end = found.l_len == 0 || last >= LAST_BYTE;
        let last = if is_to_the_end { i64::MAX } else { last };
        let mut answer = Answer::default();
        answer.u64(found.l_start.cast_unsigned()).u64(last.cast_unsigned());
        answer.u32(i32::from(found.l_type).cast_unsigned()).u32(found.l_pid.cast_unsigned());
        Ok(Outcome::Fields(answer))
    }

    pub(crate) fn set_lock(&self, request: &mut Request, reply: &Reply) -> Result {
        let wanted = self.wanted(request)?;
        let mut tried = wanted.try_now();
        if tried == Err(Failure(libc::EAGAIN)) && wanted.is_flock {
            wanted.give_back_flock()?;
            self.locks.look_again(request.node);
            tried = wanted.try_now();
        }
        if wanted.is_flock && request.opcode != SETLKW {
            for round in 0..FLOCK_TRIES {
                if tried != Err(Failure(libc::EAGAIN)) {
                    break;
                }
                clock::sleep(INTERVAL_MIN * 2_u32.pow(round));
                tried = wanted.try_now();
            }
        }
        match tried {
            Ok(()) => {
                self.locks.note_owner(&wanted);
                if wanted.is_unlock() {
                    self.locks.look_again(request.node);
                }
                Ok(Outcome::Empty)
            }
            Err(Failure(libc::EAGAIN)) if request.opcode == SETLKW => {
                self.locks.wait(wanted, reply.clone())
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn interrupt(&self, request: &mut Request) -> Result {
        self.locks.interrupt(request.body.u64()?);
        Ok(Outcome::Silence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_processes_end_before_the_bytes_of_the_client() {
        let whole = whole_lock(libc::F_WRLCK);
        assert_eq!(whole.l_start + whole.l_len - 1, LAST_BYTE);
        const { assert!(LAST_BYTE < FLOCK_BYTE && FLOCK_BYTE < APPEND_BYTE) };
        assert_eq!(byte_lock(libc::F_RDLCK, FLOCK_BYTE).l_len, 1);
    }

    #[test]
    fn owner_gives_back_its_locks_once() {
        let locks = Locks::default();
        locks.state.lock().owners.insert((1, 2));
        assert!(!locks.end_of(1, 3));
        assert!(locks.end_of(1, 2));
        assert!(!locks.end_of(1, 2));
    }

    #[test]
    fn early_interrupts_are_kept_for_the_requests_that_come() {
        let locks = Locks::default();
        (0..100).for_each(|unique| locks.interrupt(unique));
        let early = locks.state.lock().early.clone();
        assert_eq!((early.len(), early.first(), early.last()), (EARLY_MAX, Some(&36), Some(&99)));
    }
}
