//! Keeps the errno of the program unchanged.

use std::ffi::c_int;

/// Sets errno.
pub(crate) fn set(value: c_int) {
    // SAFETY: the C library returns the address of this thread's errno.
    unsafe { *libc::__errno_location() = value };
}

/// Runs the library's logic and restores errno afterwards.
pub(crate) fn kept<T>(logic: impl FnOnce() -> T) -> T {
    // SAFETY: as above.
    let before = unsafe { *libc::__errno_location() };
    let result = logic();
    set(before);
    result
}
