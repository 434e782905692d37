//! Checks of locks that two processes of one node hold.
//! Never waits for a lock: one that is held must be refused at once.

use crate::check::{Check, check};
use crate::operation::Flag::{Create, ReadWrite};
use crate::operation::Handle;
use crate::operation::Lock::{Exclusive, Release, Shared};
use crate::trial::{Expect, Failure, Trial, same};

/// A refused lock.
const BUSY: &[&str] = &["EAGAIN", "EACCES"];

pub(super) const CHECKS: &[Check] = &[
    check(
        "record_lock_excludes",
        "an fcntl lock excludes another process, until it is released",
        |t| {
            let (file, child, theirs) = two(t)?;
            t.one().record_lock(file, Exclusive, 0, 0).or_unsupported(&["ENOLCK"])?;
            t.child(0, child).record_lock(theirs, Exclusive, 0, 0).fails_with(BUSY)?;
            t.child(0, child).record_lock(theirs, Shared, 0, 0).fails_with(BUSY)?;
            t.one().record_lock(file, Release, 0, 0)?;
            Ok(t.child(0, child).record_lock(theirs, Exclusive, 0, 0)?)
        },
    ),
    check("record_lock_shared", "shared fcntl locks of two processes go together", |t| {
        let (file, child, theirs) = two(t)?;
        t.one().record_lock(file, Shared, 0, 0).or_unsupported(&["ENOLCK"])?;
        t.child(0, child).record_lock(theirs, Shared, 0, 0)?;
        t.child(0, child).record_lock(theirs, Exclusive, 0, 0).fails_with(BUSY)
    }),
    check("record_lock_ranges", "fcntl locks of separate ranges do not conflict", |t| {
        let (file, child, theirs) = two(t)?;
        t.one().record_lock(file, Exclusive, 0, 10).or_unsupported(&["ENOLCK"])?;
        t.child(0, child).record_lock(theirs, Exclusive, 10, 10)?;
        t.child(0, child).record_lock(theirs, Exclusive, 9, 1).fails_with(BUSY)?;
        t.one().record_lock(file, Exclusive, 19, 1).fails_with(BUSY)
    }),
    check("record_lock_query", "F_GETLK finds the lock of another process", |t| {
        let (file, child, theirs) = two(t)?;
        t.child(0, child).record_lock(theirs, Exclusive, 0, 0).or_unsupported(&["ENOLCK"])?;
        same("conflict", t.one().conflicts(file, Exclusive)?, true)?;
        t.child(0, child).record_lock(theirs, Release, 0, 0)?;
        same("conflict", t.one().conflicts(file, Exclusive)?, false)
    }),
    check("record_lock_ends_at_close", "closing a file releases its fcntl locks", |t| {
        let (file, child, theirs) = two(t)?;
        t.child(0, child).record_lock(theirs, Exclusive, 0, 0).or_unsupported(&["ENOLCK"])?;
        t.one().record_lock(file, Exclusive, 0, 0).fails_with(BUSY)?;
        t.child(0, child).close(theirs)?;
        Ok(t.one().record_lock(file, Exclusive, 0, 0)?)
    }),
    check("record_lock_ends_at_death", "the death of a process releases its fcntl locks", |t| {
        let (file, child, theirs) = two(t)?;
        t.child(0, child).record_lock(theirs, Exclusive, 0, 0).or_unsupported(&["ENOLCK"])?;
        t.one().record_lock(file, Exclusive, 0, 0).fails_with(BUSY)?;
        t.one().kill_child(child)?;
        Ok(t.one().record_lock(file, Exclusive, 0, 0)?)
    }),
    check("file_lock_excludes", "a flock excludes another process, until it is released", |t| {
        let (file, child, theirs) = two(t)?;
        t.one().file_lock(file, Exclusive).or_unsupported(&["ENOLCK"])?;
        t.child(0, child).file_lock(theirs, Exclusive).fails_with(BUSY)?;
        t.child(0, child).file_lock(theirs, Shared).fails_with(BUSY)?;
        t.one().file_lock(file, Release)?;
        Ok(t.child(0, child).file_lock(theirs, Exclusive)?)
    }),
    check("file_lock_of_handles", "a flock belongs to the open file, also within a process", |t| {
        let one = t.one().open("f", &[ReadWrite, Create])?;
        let other = t.one().open("f", &[ReadWrite])?;
        t.one().file_lock(one, Exclusive).or_unsupported(&["ENOLCK"])?;
        t.one().file_lock(other, Exclusive).fails_with(BUSY)?;
        t.one().close(one)?;
        Ok(t.one().file_lock(other, Exclusive)?)
    }),
    check("file_lock_shared", "shared flocks go together and exclude an exclusive one", |t| {
        let (file, child, theirs) = two(t)?;
        t.one().file_lock(file, Shared).or_unsupported(&["ENOLCK"])?;
        t.child(0, child).file_lock(theirs, Shared)?;
        t.one().file_lock(file, Exclusive).fails_with(BUSY)
    }),
    check("file_lock_ends_at_death", "the death of a process releases its flocks", |t| {
        let (file, child, theirs) = two(t)?;
        t.child(0, child).file_lock(theirs, Exclusive).or_unsupported(&["ENOLCK"])?;
        t.one().file_lock(file, Exclusive).fails_with(BUSY)?;
        t.one().kill_child(child)?;
        Ok(t.one().file_lock(file, Exclusive)?)
    }),
];

/// A file that this process and a child have open: its handle, the child, the child's handle.
fn two(t: &mut Trial<'_>) -> Result<(Handle, Handle, Handle), Failure> {
    let file = t.one().open("f", &[ReadWrite, Create])?;
    let child = t.one().fork()?;
    let theirs = t.child(0, child).open("f", &[ReadWrite])?;
    Ok((file, child, theirs))
}
