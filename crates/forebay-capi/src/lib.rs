//! libdatawarp (`include/datawarp.h`): C functions that query the `forebay run` of the job. Between
//! calls it keeps only the name of the socket, so threads, forks and programs that close all files
//! are safe. Never prints, raises a signal, starts a thread or lets a panic reach the caller.
#![allow(clippy::missing_safety_doc, clippy::similar_names)] // see the header for the pointers

mod ceph_layout;
mod failed;
mod layout;
mod query;
mod stage;

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The error is a negative errno.
type ErrnoResult<T> = Result<T, c_int>;

/// The return value of a call: 0, or a negative errno.
fn status(call: impl FnOnce() -> ErrnoResult<()>) -> c_int {
    value(call).err().unwrap_or(0)
}

/// The result of a call, or a negative errno.
fn value<T>(call: impl FnOnce() -> ErrnoResult<T>) -> ErrnoResult<T> {
    let _held = CancelHeld::new();
    // A panic must not unwind into C.
    catch_unwind(AssertUnwindSafe(call)).unwrap_or(Err(-libc::EIO))
}

/// Delays a `pthread_cancel` of this thread until the call returns: it would unwind through Rust, which aborts.
struct CancelHeld(c_int);

impl CancelHeld {
    fn new() -> Self {
        let mut before = 0;
        // SAFETY: the pointer is valid.
        unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &raw mut before) };
        Self(before)
    }
}

impl Drop for CancelHeld {
    fn drop(&mut self) {
        let mut disabled = 0;
        // SAFETY: the state is one that the function returned, and the pointer is valid.
        unsafe { pthread_setcancelstate(self.0, &raw mut disabled) };
    }
}

/// In pthread.h of glibc and musl.
const PTHREAD_CANCEL_DISABLE: c_int = 1;

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}
