//! libdatawarp (`include/datawarp.h`): C functions that query the `forebay run` of the job. Keeps only the name of the
//! socket between two calls, so threads, forks and programs that close all files are safe. Never prints, raises a
//! signal, starts a thread or lets a panic reach the caller.
#![allow(clippy::missing_safety_doc, clippy::similar_names)] // the header says what pointers must be

mod failed;
mod layout;
mod query;
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
