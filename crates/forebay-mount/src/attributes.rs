//! Changes of attributes, and access(2).
//! libcephfs judges a change, except a truncation through an open file.
//! Answers access(2) from the mode and the groups alone: ACLs do not count.

use forebay_ceph::Attributes;
use forebay_host::{clock, users};

use crate::client::ACCESS_ATTRIBUTES;
use crate::error::Errno;
use crate::opened::CephFile;
use crate::protocol::{Answer, Caller, Request};
use crate::reply::{Outcome, Result};
use crate::server::Server;

/// What a request of the kernel sets.
const MODE: u32 = 1 << 0;
const UID: u32 = 1 << 1;
const GID: u32 = 1 << 2;
const SIZE: u32 = 1 << 3;
const ATIME: u32 = 1 << 4;
const MTIME: u32 = 1 << 5;
/// The file is open for it.
const HANDLE: u32 = 1 << 6;
const ATIME_NOW: u32 = 1 << 7;
const MTIME_NOW: u32 = 1 << 8;

/// What libcephfs sets.
const CEPH_MODE: i32 = 1 << 0;
const CEPH_UID: i32 = 1 << 1;
const CEPH_GID: i32 = 1 << 2;
const CEPH_MTIME: i32 = 1 << 3;
const CEPH_ATIME: i32 = 1 << 4;
const CEPH_SIZE: i32 = 1 << 5;
/// Who may write may set the time to now.
const CEPH_MTIME_NOW: i32 = 1 << 7;
const CEPH_ATIME_NOW: i32 = 1 << 8;

/// The last second that a server can store: in the year 2106.
const LAST_S: i64 = u32::MAX as i64;

/// The bits of access(2).
const MAY_EXECUTE: u32 = 1;

impl Server {
    pub(crate) fn set_attributes(&self, request: &mut Request) -> Result {
        let body = &mut request.body;
        let valid = body.u32()?;
        body.take(4 + 8)?; // padding, and the file
        let size = body.u64()?;
        body.take(8)?; // the owner of locks
        let (atime_s, mtime_s, _) = (body.u64()?, body.u64()?, body.u64()?);
        let (atime_ns, mtime_ns, _) = (body.u32()?, body.u32()?, body.u32()?);
        let mode = body.u32()?;
        body.take(4)?;
        let (uid, gid) = (body.u32()?, body.u32()?);
        let mut wanted = Attributes { size, uid, gid, ..Attributes::default() };
        wanted.mode = (mode & 0o7777) as u16;
        wanted.atime = time(valid & ATIME_NOW != 0, atime_s, atime_ns);
        // When libcephfs makes a file longer without a server, it leaves the time of modification.
        let sets_size_alone = valid & (SIZE | MTIME) == SIZE;
        wanted.mtime = time(sets_size_alone || valid & MTIME_NOW != 0, mtime_s, mtime_ns);
        let mask = mask(if sets_size_alone { valid | MTIME | MTIME_NOW } else { valid });
        // A file that is open for writing can be truncated whatever its mode is now.
        let is_truncate = valid & HANDLE != 0 && valid & (MODE | UID | GID) == 0;
        let who = (!(is_truncate && valid & SIZE != 0)).then(|| self.caller_identity(request));
        if mask & CEPH_SIZE != 0
            && let Some(inode) = self.inodes.find(request.node)
        {
            inode.flush_and_invalidate()?;
        }
        if mask & CEPH_SIZE != 0 {
            self.client.complete_writes(request.node);
        }
        let _opened = self.opened_for_change(request.node, mask)?;
        if mask != 0 {
            self.client.set_attributes(request.node, &wanted, mask, who.as_ref())?;
        }
        if mask & CEPH_SIZE != 0 && size == 0 {
            self.inodes.lost.note_emptied(&self.client, request.node)?;
        }
        let mut found = self.client.attributes(request.node)?;
        // The client takes no time of a directory from the server as long as the server does not know this one.
        if found.is_directory() && mask & (CEPH_ATIME | CEPH_MTIME) != 0 {
            self.client.sync_node(request.node, false)?;
            found = self.client.attributes(request.node)?;
        }
        Ok(Outcome::Fields(Answer::fresh_attributes(&found)))
    }

    /// A file whose size or times are to be changed by its path, opened: then a node that writes it has written back what
    /// it has buffered. For the change alone, the metadata server leaves it the buffer, and does not wait for it when a
    /// third node opens the file meanwhile and reads (Ceph 16.2.15). Opened for reading, that was rarer, but not gone.
    fn opened_for_change(&self, node: u64, mask: i32) -> Result<Option<CephFile>> {
        let is_of_content = mask & (CEPH_SIZE | CEPH_ATIME | CEPH_MTIME) != 0;
        if !is_of_content || self.inodes.find(node).is_some() {
            return Ok(None);
        }
        let found = self.client.some_attributes(node, ACCESS_ATTRIBUTES)?;
        let is_file = u32::from(found.mode) & libc::S_IFMT == libc::S_IFREG;
        if !is_file {
            return Ok(None);
        }
        let opened = self.client.open_for_change(node)?;
        self.client.size(node)?; // the server answers when the other node has written back
        Ok(Some(opened))
    }

    pub(crate) fn access(&self, request: &mut Request) -> Result {
        let wanted = request.body.u32()?;
        let found = self.client.some_attributes(request.node, ACCESS_ATTRIBUTES)?;
        let groups = |caller: &Caller| users::groups_of_process(caller.pid).unwrap_or_default();
        match may(&found, &request.caller, wanted, groups) {
            true => Ok(Outcome::Empty),
            false => Err(Errno(libc::EACCES)),
        }
    }
}

fn mask(valid: u32) -> i32 {
    // Who may write may set both times to now, or cut the file. One of the times is the owner's to set.
    let both = ATIME_NOW | MTIME_NOW;
    let is_write = valid & both == both || valid & (SIZE | MTIME_NOW) == SIZE | MTIME_NOW;
    let valid = if is_write { valid } else { valid & !both };
    let pairs = [
        (MODE, CEPH_MODE),
        (UID, CEPH_UID),
        (GID, CEPH_GID),
        (SIZE, CEPH_SIZE),
        (ATIME, CEPH_ATIME),
        (MTIME, CEPH_MTIME),
        (ATIME_NOW, CEPH_ATIME_NOW),
        (MTIME_NOW, CEPH_MTIME_NOW),
    ];
    pairs.iter().filter(|(kernel, _)| valid & kernel != 0).map(|(_, ceph)| ceph).sum()
}

/// A time before or after those that a server can store becomes the nearest of them, as the kernel does it for its file
/// systems. The server would store its lowest 32 bits.
fn time(is_now: bool, seconds: u64, nanoseconds: u32) -> libc::timespec {
    if is_now {
        let now = clock::since_epoch();
        let seconds = now.as_secs().cast_signed();
        return libc::timespec { tv_sec: seconds, tv_nsec: now.subsec_nanos().into() };
    }
    match seconds.cast_signed() {
        ..0 => libc::timespec { tv_sec: 0, tv_nsec: 0 },
        seconds if seconds > LAST_S => libc::timespec { tv_sec: LAST_S, tv_nsec: 0 },
        seconds => libc::timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() },
    }
}

/// Whether a process may do what the bits say: read 4, write 2, execute 1.
fn may(
    of: &Attributes,
    caller: &Caller,
    wanted: u32,
    groups: impl FnOnce(&Caller) -> Vec<u32>,
) -> bool {
    let (mode, wanted) = (u32::from(of.mode), wanted & 7);
    if caller.uid == 0 {
        return wanted & MAY_EXECUTE == 0 || of.is_directory() || mode & 0o111 != 0;
    }
    let shift = if caller.uid == of.uid {
        6
    } else if caller.gid == of.gid || groups(caller).contains(&of.gid) {
        3
    } else {
        0
    };
    (mode >> shift) & wanted == wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(mode: u16, uid: u32, gid: u32, wanted: u32) -> bool {
        let of = Attributes { mode, uid: 10, gid: 20, ..Attributes::default() };
        may(&of, &Caller { uid, gid, pid: 0 }, wanted, |_| vec![30, 20])
    }

    #[test]
    fn class_of_the_caller_alone_counts() {
        assert!(judged(0o640, 10, 1, 6));
        assert!(!judged(0o077, 10, 20, 4));
        assert!(judged(0o640, 11, 20, 4));
        assert!(judged(0o640, 11, 21, 4)); // a supplementary group
        assert!(!judged(0o640, 11, 21, 2));
    }

    #[test]
    fn root_needs_an_execute_bit_of_anybody() {
        assert!(judged(0o000, 0, 0, 6));
        assert!(!judged(0o600, 0, 0, 1));
        assert!(judged(0o601, 0, 0, 1));
        assert!(judged(libc::S_IFDIR as u16, 0, 0, 1));
    }

    #[test]
    fn bits_of_the_kernel_become_those_of_libcephfs() {
        assert_eq!(mask(SIZE | HANDLE), CEPH_SIZE);
        assert_eq!(mask(ATIME | ATIME_NOW | MTIME), CEPH_ATIME | CEPH_MTIME);
        let both = CEPH_ATIME | CEPH_MTIME | CEPH_ATIME_NOW | CEPH_MTIME_NOW;
        assert_eq!(mask(ATIME | MTIME | ATIME_NOW | MTIME_NOW), both);
        assert_eq!(mask(SIZE | MTIME | MTIME_NOW), CEPH_SIZE | CEPH_MTIME | CEPH_MTIME_NOW);
        assert_eq!(mask(MODE | UID | GID), 7);
    }

    #[test]
    fn time_is_one_that_a_server_can_store() {
        let stored = |seconds: i64| {
            let found = time(false, seconds.cast_unsigned(), 123_456_789);
            (found.tv_sec, found.tv_nsec)
        };
        assert_eq!(stored(0), (0, 123_456_789));
        assert_eq!(stored(LAST_S), (LAST_S, 123_456_789));
        assert_eq!((stored(-5), stored(i64::MIN)), ((0, 0), (0, 0)));
        assert_eq!((stored(LAST_S + 1), stored(i64::MAX)), ((LAST_S, 0), (LAST_S, 0)));
        assert!(time(true, 0, 0).tv_sec > 1_600_000_000);
    }
}
