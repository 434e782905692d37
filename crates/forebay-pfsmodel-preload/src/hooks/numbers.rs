//! Calls that create, copy or close descriptors. They cost nothing, but update the table.

use std::ffi::c_int;

use crate::descriptors::forget;
use crate::hooks::hooks;

hooks! {
    [close] {
        (fd: c_int) -> c_int;
        before forget(fd);
    }
    [dup] {
        (fd: c_int) -> c_int;
        after(copy) forget(copy);
    }
    [dup2] {
        (fd: c_int, wanted: c_int) -> c_int;
        after(copy) forget(copy);
    }
    [dup3] {
        (fd: c_int, wanted: c_int, flags: c_int) -> c_int;
        after(copy) forget(copy);
    }
    // The argument is a number, a pointer or absent; see the comment in lib.rs on variadic functions.
    [fcntl, fcntl64] {
        (fd: c_int, command: c_int, argument: usize) -> c_int;
        after(outcome) if matches!(command, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) { forget(outcome) };
    }
}
