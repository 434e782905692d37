//! Calls that transfer file data.
//! Each is charged before it, for at most the bytes asked for. Copies inside the kernel are charged afterwards, for
//! the bytes moved.

use std::ffi::{c_int, c_uint, c_void};

use forebay_pfsmodel::Op::{Read, Write};
use libc::{iovec, size_t, ssize_t};

use crate::delay::{self, FileOffset};
use crate::hooks::hooks;

hooks! {
    [read] {
        (fd: c_int, buffer: *mut c_void, length: size_t) -> ssize_t;
        charge delay::read(fd, length, FileOffset::Position);
    }
    [__read_chk] {
        (fd: c_int, buffer: *mut c_void, length: size_t, room: size_t) -> ssize_t;
        charge delay::read(fd, length, FileOffset::Position);
    }
    [pread, pread64] {
        (fd: c_int, buffer: *mut c_void, length: size_t, offset: i64) -> ssize_t;
        charge delay::read(fd, length, FileOffset::Offset(offset));
    }
    [__pread_chk, __pread64_chk] {
        (fd: c_int, buffer: *mut c_void, length: size_t, offset: i64, room: size_t) -> ssize_t;
        charge delay::read(fd, length, FileOffset::Offset(offset));
    }
    [readv] {
        (fd: c_int, vector: *const iovec, count: c_int) -> ssize_t;
        // SAFETY: the program's vector, as readv demands it.
        charge unsafe { delay::vector(fd, Read, vector, count, FileOffset::Position) };
    }
    [preadv, preadv64] {
        (fd: c_int, vector: *const iovec, count: c_int, offset: i64) -> ssize_t;
        // SAFETY: the program's vector, as preadv demands it.
        charge unsafe { delay::vector(fd, Read, vector, count, FileOffset::Offset(offset)) };
    }
    [preadv2, preadv64v2] {
        (fd: c_int, vector: *const iovec, count: c_int, offset: i64, flags: c_int) -> ssize_t;
        // SAFETY: the program's vector, as preadv2 demands it.
        charge unsafe { delay::vector(fd, Read, vector, count, position_or(offset)) };
    }
    [write] {
        (fd: c_int, buffer: *const c_void, length: size_t) -> ssize_t;
        charge delay::write(fd, length, FileOffset::Position);
    }
    [pwrite, pwrite64] {
        (fd: c_int, buffer: *const c_void, length: size_t, offset: i64) -> ssize_t;
        charge delay::write(fd, length, FileOffset::Offset(offset));
    }
    [writev] {
        (fd: c_int, vector: *const iovec, count: c_int) -> ssize_t;
        // SAFETY: the program's vector, as writev demands it.
        charge unsafe { delay::vector(fd, Write, vector, count, FileOffset::Position) };
    }
    [pwritev, pwritev64] {
        (fd: c_int, vector: *const iovec, count: c_int, offset: i64) -> ssize_t;
        // SAFETY: the program's vector, as pwritev demands it.
        charge unsafe { delay::vector(fd, Write, vector, count, FileOffset::Offset(offset)) };
    }
    [pwritev2, pwritev64v2] {
        (fd: c_int, vector: *const iovec, count: c_int, offset: i64, flags: c_int) -> ssize_t;
        // SAFETY: the program's vector, as pwritev2 demands it.
        charge unsafe { delay::vector(fd, Write, vector, count, position_or(offset)) };
    }
    [copy_file_range, splice] {
        (from: c_int, from_offset: *mut i64, to: c_int, to_offset: *mut i64, length: size_t, flags: c_uint) -> ssize_t;
        // SAFETY: the program's offsets, as the call demands them.
        before(sides) unsafe { (delay::side(from, from_offset), delay::side(to, to_offset)) };
        after(moved) delay::transfer(&sides.0, &sides.1, moved);
    }
    [sendfile, sendfile64] {
        (to: c_int, from: c_int, from_offset: *mut i64, length: size_t) -> ssize_t;
        // SAFETY: the program's offset, as sendfile demands it.
        before(sides) unsafe { (delay::side(from, from_offset), delay::side(to, std::ptr::null())) };
        after(moved) delay::transfer(&sides.0, &sides.1, moved);
    }
    [fsync, fdatasync] {
        (fd: c_int) -> c_int;
        before delay::sync(fd);
    }
}

/// preadv2 and pwritev2 use -1 for the descriptor's position.
fn position_or(offset: i64) -> FileOffset {
    if offset == -1 { FileOffset::Position } else { FileOffset::Offset(offset) }
}
