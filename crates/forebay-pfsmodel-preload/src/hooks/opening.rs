//! Calls that open and create files and directories.
//! An emulated name is charged before the call, also if it then fails. Its stripes are charged, and a layout is
//! bound, after it.

use std::ffi::{c_char, c_int};

use libc::{AT_FDCWD, mode_t};

use crate::binding::{after_mkdir, after_open, before_open};
use crate::hooks::hooks;

hooks! {
    // mode exists only with O_CREAT; see the comment in lib.rs on variadic functions.
    [open, open64] {
        (path: *const c_char, flags: c_int, mode: mode_t) -> c_int;
        before(opening) before_open(AT_FDCWD, path);
        after(fd) after_open(fd, may_create(flags), opening);
    }
    [openat, openat64] {
        (directory: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int;
        before(opening) before_open(directory, path);
        after(fd) after_open(fd, may_create(flags), opening);
    }
    [__open_2, __open64_2] {
        (path: *const c_char, flags: c_int) -> c_int;
        before(opening) before_open(AT_FDCWD, path);
        after(fd) after_open(fd, may_create(flags), opening);
    }
    [__openat_2, __openat64_2] {
        (directory: c_int, path: *const c_char, flags: c_int) -> c_int;
        before(opening) before_open(directory, path);
        after(fd) after_open(fd, may_create(flags), opening);
    }
    [creat, creat64] {
        (path: *const c_char, mode: mode_t) -> c_int;
        before(opening) before_open(AT_FDCWD, path);
        after(fd) after_open(fd, true, opening);
    }
    [mkstemp, mkstemp64] {
        (template: *mut c_char) -> c_int;
        before(opening) before_open(AT_FDCWD, template);
        after(fd) after_open(fd, true, opening);
    }
    [mkostemp, mkostemp64, mkstemps, mkstemps64] {
        (template: *mut c_char, flags_or_suffix: c_int) -> c_int;
        before(opening) before_open(AT_FDCWD, template);
        after(fd) after_open(fd, true, opening);
    }
    [mkostemps, mkostemps64] {
        (template: *mut c_char, suffix: c_int, flags: c_int) -> c_int;
        before(opening) before_open(AT_FDCWD, template);
        after(fd) after_open(fd, true, opening);
    }
    [mkdir] {
        (path: *const c_char, mode: mode_t) -> c_int;
        before(_charged) crate::delay::metadata_at(AT_FDCWD, path);
        after(result) after_mkdir(result, AT_FDCWD, path);
    }
    [mkdirat] {
        (directory: c_int, path: *const c_char, mode: mode_t) -> c_int;
        before(_charged) crate::delay::metadata_at(directory, path);
        after(result) after_mkdir(result, directory, path);
    }
}

fn may_create(flags: c_int) -> bool {
    flags & libc::O_CREAT != 0 || flags & libc::O_TMPFILE == libc::O_TMPFILE
}
