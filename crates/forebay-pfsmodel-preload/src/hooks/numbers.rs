//! Calls that make, copy or close descriptor numbers: free, but the table must hear of them.

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
    // The argument is a number or a pointer, or absent; see the crate's head on variadic functions.
    [fcntl, fcntl64] {
        (fd: c_int, command: c_int, argument: usize) -> c_int;
        after(outcome) if matches!(command, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) { forget(outcome) };
    }
}
