//! Byte ranges that stand for locks.
//!
//! libcephfs offers only byte-range locks by handle. The last bytes that a range can name stand for flock, for the lock
//! of appends, and for what nodes tell each other of a file. No file is so large, and ranges of processes end before
//! them.

/// The byte whose lock is that of appends.
pub(crate) const APPEND_BYTE: i64 = i64::MAX - 1;
/// The byte whose lock is the flock of the file.
pub(crate) const FLOCK_BYTE: i64 = i64::MAX - 2;
/// The byte that each node locks on which the file is lazy.
pub(crate) const LAZY_BYTE: i64 = i64::MAX - 3;
/// The byte that each node locks which needs the file strict.
pub(crate) const STRICT_BYTE: i64 = i64::MAX - 4;
/// The last byte that ranges of processes reach.
pub(crate) const LAST_BYTE: i64 = i64::MAX - 16;

/// A lock of one byte.
pub(crate) fn byte_lock(kind: i32, byte: i64) -> libc::flock {
    lock(kind, byte, byte)
}

/// A lock of all bytes that processes can lock.
pub(crate) fn whole_lock(kind: i32) -> libc::flock {
    lock(kind, 0, LAST_BYTE)
}

/// A lock of the bytes from `first` to `last`.
pub(crate) fn lock(kind: i32, first: i64, last: i64) -> libc::flock {
    libc::flock {
        l_type: kind as i16,
        l_whence: libc::SEEK_SET as i16,
        l_start: first,
        l_len: last - first + 1,
        l_pid: 0,
    }
}

/// The kernel has process ids of so many bits (`PID_MAX_LIMIT`).
const PROCESS_BITS: u32 = 22;

/// The id of a process with a few bits of its client's number, for a lock that it holds.
pub(crate) fn holder(process: u32, client: u64) -> i32 {
    let process = if process < 1 << PROCESS_BITS { process } else { 0 };
    (mark(client) | process).cast_signed()
}

/// The process of a lock's holder; 0, which is none, for one of another node. One of 512 other nodes has the same bits.
pub(crate) fn process_of(holder: i32, client: u64) -> u32 {
    let process = holder.cast_unsigned() ^ mark(client);
    if process < 1 << PROCESS_BITS { process } else { 0 }
}

/// The bits above those of a process id.
fn mark(client: u64) -> u32 {
    ((client % (1 << (31 - PROCESS_BITS))) as u32) << PROCESS_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_of_a_lock_is_known_on_its_own_node_only() {
        assert_eq!(process_of(holder(4711, 8123), 8123), 4711);
        assert_eq!(process_of(holder(4711, 8123), 8124), 0);
        assert_eq!(process_of(holder(1 << 22, 8123), 8123), 0);
        assert!(holder(u32::MAX, u64::MAX) > 0);
    }

    #[test]
    fn ranges_of_processes_end_before_the_bytes_of_the_client() {
        let whole = whole_lock(libc::F_WRLCK);
        assert_eq!(whole.l_start + whole.l_len - 1, LAST_BYTE);
        const { assert!(LAST_BYTE < STRICT_BYTE && STRICT_BYTE < LAZY_BYTE) };
        const { assert!(LAZY_BYTE < FLOCK_BYTE && FLOCK_BYTE < APPEND_BYTE) };
        assert_eq!(byte_lock(libc::F_RDLCK, FLOCK_BYTE).l_len, 1);
    }
}
