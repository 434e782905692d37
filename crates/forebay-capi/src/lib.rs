//! libdatawarp: `include/datawarp.h`, whose functions ask the `forebay run` of the job.
//!
//! Nothing is kept between two calls but the name of the socket, so threads, forks and programs that close
//! all their files need no care. Nothing is printed, no signal is raised, no thread is started, and no panic
//! reaches the caller.
#![allow(clippy::missing_safety_doc, clippy::similar_names)] // the header says what pointers must be

mod ask;
mod failed;
mod layout;
mod stage;

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The negative number of an error, or nothing.
type Refused<T> = Result<T, c_int>;

/// What a call returns: 0, or the negative number of an error.
fn status(call: impl FnOnce() -> Refused<()>) -> c_int {
    value(call).err().unwrap_or(0)
}

/// What a call makes, or the negative number of an error.
fn value<T>(call: impl FnOnce() -> Refused<T>) -> Refused<T> {
    // What would be a fault of ours must not unwind into C.
    catch_unwind(AssertUnwindSafe(call)).unwrap_or(Err(-libc::EIO))
}
