//! Checks of locks that processes of several nodes hold.
//! Never waits for a lock: one that is held must be refused at once.

use crate::check::{Check, check};
use crate::operation::Flag::{Create, ReadWrite};
use crate::operation::Lock::{self, Exclusive, Release, Shared};
use crate::operation::{Handle, LockKind};
use crate::trial::{Expect, NodeOperations, OperationResult, Trial, Verdict, same};

/// A refused lock.
const BUSY: &[&str] = &["EAGAIN", "EACCES"];

pub(super) const CHECKS: &[Check] = &[
    check(
        "record_lock_across",
        "an fcntl lock excludes the other nodes, until it is released",
        |t| excludes(t, LockKind::Record),
    ),
    check("record_lock_shared_across", "shared fcntl locks of several nodes go together", |t| {
        shares(t, LockKind::Record)
    }),
    check(
        "record_lock_ranges_across",
        "fcntl locks of separate ranges on several nodes do not conflict",
        |t| {
            for node in t.all() {
                let file = t.on(node).open("f", &[ReadWrite, Create])?;
                let offset = 10 * node as u64;
                t.on(node).record_lock(file, Exclusive, offset, 10).or_unsupported(&["ENOLCK"])?;
                if node > 0 {
                    t.on(node).record_lock(file, Exclusive, offset - 1, 1).fails_with(BUSY)?;
                }
            }
            Ok(())
        },
    ),
    check("record_lock_query_across", "F_GETLK finds the lock of another node", |t| {
        let file = t.on(0).open("f", &[ReadWrite, Create])?;
        for node in t.others() {
            let theirs = t.on(node).open("f", &[ReadWrite])?;
            t.on(0).record_lock(file, Exclusive, 0, 0).or_unsupported(&["ENOLCK"])?;
            same("conflict", t.on(node).conflicts(theirs, Exclusive)?, true)?;
            t.on(0).record_lock(file, Release, 0, 0)?;
            same("conflict", t.on(node).conflicts(theirs, Exclusive)?, false)?;
        }
        Ok(())
    }),
    check(
        "record_lock_death_across",
        "the death of a process releases its fcntl locks for other nodes",
        |t| ends_at_death(t, LockKind::Record),
    ),
    check(
        "record_lock_close_across",
        "closing a file releases its fcntl locks for other nodes",
        |t| ends_at_close(t, LockKind::Record),
    ),
    check("file_lock_across", "a flock excludes the other nodes, until it is released", |t| {
        excludes(t, LockKind::File)
    }),
    check("file_lock_shared_across", "shared flocks of several nodes go together", |t| {
        shares(t, LockKind::File)
    }),
    check(
        "file_lock_death_across",
        "the death of a process releases its flocks for other nodes",
        |t| ends_at_death(t, LockKind::File),
    ),
    check("file_lock_close_across", "closing a file releases its flock for other nodes", |t| {
        ends_at_close(t, LockKind::File)
    }),
];

fn lock(
    mut on: NodeOperations<'_>,
    kind: LockKind,
    file: Handle,
    lock: Lock,
) -> OperationResult<()> {
    match kind {
        LockKind::Record => on.record_lock(file, lock, 0, 0),
        LockKind::File => on.file_lock(file, lock),
    }
}

fn excludes(t: &mut Trial<'_>, kind: LockKind) -> Verdict {
    let file = t.on(0).open("f", &[ReadWrite, Create])?;
    for node in t.others() {
        let theirs = t.on(node).open("f", &[ReadWrite])?;
        lock(t.on(0), kind, file, Exclusive).or_unsupported(&["ENOLCK"])?;
        lock(t.on(node), kind, theirs, Exclusive).fails_with(BUSY)?;
        lock(t.on(node), kind, theirs, Shared).fails_with(BUSY)?;
        lock(t.on(0), kind, file, Release)?;
        lock(t.on(node), kind, theirs, Exclusive)?;
        lock(t.on(0), kind, file, Exclusive).fails_with(BUSY)?;
        lock(t.on(node), kind, theirs, Release)?;
    }
    Ok(())
}

fn shares(t: &mut Trial<'_>, kind: LockKind) -> Verdict {
    let file = t.on(0).open("f", &[ReadWrite, Create])?;
    lock(t.on(0), kind, file, Shared).or_unsupported(&["ENOLCK"])?;
    for node in t.others() {
        let theirs = t.on(node).open("f", &[ReadWrite])?;
        lock(t.on(node), kind, theirs, Exclusive).fails_with(BUSY)?;
        lock(t.on(node), kind, theirs, Shared)?;
    }
    lock(t.on(0), kind, file, Exclusive).fails_with(BUSY)
}

fn ends_at_death(t: &mut Trial<'_>, kind: LockKind) -> Verdict {
    let file = t.on(0).open("f", &[ReadWrite, Create])?;
    for node in t.others() {
        let child = t.on(node).fork()?;
        let theirs = t.child(node, child).open("f", &[ReadWrite])?;
        lock(t.child(node, child), kind, theirs, Exclusive).or_unsupported(&["ENOLCK"])?;
        lock(t.on(0), kind, file, Exclusive).fails_with(BUSY)?;
        t.on(node).kill_child(child)?;
        lock(t.on(0), kind, file, Exclusive)?;
        lock(t.on(0), kind, file, Release)?;
    }
    Ok(())
}

fn ends_at_close(t: &mut Trial<'_>, kind: LockKind) -> Verdict {
    let file = t.on(0).open("f", &[ReadWrite, Create])?;
    for node in t.others() {
        let theirs = t.on(node).open("f", &[ReadWrite])?;
        lock(t.on(node), kind, theirs, Exclusive).or_unsupported(&["ENOLCK"])?;
        lock(t.on(0), kind, file, Exclusive).fails_with(BUSY)?;
        t.on(node).close(theirs)?;
        lock(t.on(0), kind, file, Exclusive)?;
        lock(t.on(0), kind, file, Release)?;
    }
    Ok(())
}
