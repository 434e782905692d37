//! The kernel's requests for locks. The module `locks` answers a request that waits.
//! The thread of a request waits for a flock some 20 ms at most, and for no other lock.

use forebay_host::clock;

use crate::error::Errno;
use crate::locks::{INTERVAL_MIN, LockRequest};
use crate::protocol::{Answer, Request, SETLKW};
use crate::ranges::{FLOCK_BYTE, LAST_BYTE, byte_lock, holder, lock, process_of};
use crate::reply::{Outcome, Reply, Result};
use crate::server::Server;

/// `FUSE_LK_FLOCK`.
const IS_FLOCK: u32 = 1 << 0;
/// The kernel tells the end of an open file after close and exit have returned. So a flock that a process does not want
/// to wait for is tried this often within some 20 ms.
const FLOCK_TRIES: u32 = 4;

impl Server {
    /// The request's lock; the range of a process ends before the bytes of this client.
    fn wanted(&self, request: &mut Request) -> Result<LockRequest> {
        let body = &mut request.body;
        let (file, owner) = (body.u64()?, body.u64()?);
        let (start, end) = (body.i64()?, body.i64()?);
        let (kind, process) = (body.u32()?.cast_signed(), body.u32()?);
        let is_flock = body.u32()? & IS_FLOCK != 0;
        let file = self.files.get(file)?;
        if is_flock {
            let lock = byte_lock(kind, FLOCK_BYTE);
            return Ok(LockRequest { file, lock, owner, is_flock });
        }
        if start > LAST_BYTE {
            return Err(Errno(libc::EOVERFLOW));
        }
        let mut lock = lock(kind, start, end.min(LAST_BYTE));
        lock.l_pid = holder(process, self.client.instance());
        Ok(LockRequest { file, lock, owner, is_flock })
    }

    pub(crate) fn lock_holder(&self, request: &mut Request) -> Result {
        let wanted = self.wanted(request)?;
        let found = wanted.file.lock_holder(&wanted.lock, wanted.owner)?;
        let last = found.l_start.saturating_add(found.l_len.max(1) - 1);
        let is_to_the_end = found.l_len == 0 || last >= LAST_BYTE;
        let last = if is_to_the_end { i64::MAX } else { last };
        let mut answer = Answer::default();
        answer.u64(found.l_start.cast_unsigned()).u64(last.cast_unsigned());
        let process = process_of(found.l_pid, self.client.instance());
        answer.u32(i32::from(found.l_type).cast_unsigned()).u32(process);
        Ok(Outcome::Fields(answer))
    }

    pub(crate) fn set_lock(&self, request: &mut Request, reply: &Reply) -> Result {
        let wanted = self.wanted(request)?;
        let mut tried = wanted.try_now();
        if tried == Err(Errno(libc::EAGAIN)) && wanted.is_flock {
            wanted.give_back_flock()?;
            self.locks.look_again(request.node);
            tried = wanted.try_now();
        }
        if wanted.is_flock && request.opcode != SETLKW {
            for round in 0..FLOCK_TRIES {
                if tried != Err(Errno(libc::EAGAIN)) {
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
            Err(Errno(libc::EAGAIN)) if request.opcode == SETLKW => {
                self.locks.wait(wanted, reply.clone())
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn interrupt(&self, request: &mut Request) -> Result {
        self.locks.interrupt(request.body.u64()?);
        Ok(Outcome::NoReply)
    }
}
