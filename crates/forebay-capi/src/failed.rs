//! Lists files that could not be staged.
//! Assumes that one thread at a time uses a handle. A listing never shows failures after it was opened.

use std::ffi::{c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use forebay_requests::{Answer, Name, Question};

use crate::query::{name, query_job};
use crate::{status, value};

/// The content of `dw_failed_stage_t`: the remaining entries in reverse order.
pub struct Listing(Vec<(Name, i32)>);

/// See `datawarp.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dw_open_failed_stage(
    instance: *const c_char,
    handle: *mut *mut Listing,
) -> c_int {
    status(|| {
        if handle.is_null() {
            return Err(-libc::EINVAL);
        }
        // SAFETY: the header requires a valid argument.
        let below = unsafe { name(instance) }?;
        let Answer::Failures(mut failures) = query_job(&Question::Failures(below.clone()), &below)?
        else {
            return Err(-libc::EIO);
        };
        failures.reverse();
        // SAFETY: not NULL, and the header requires a pointer to a handle.
        unsafe { *handle = Box::into_raw(Box::new(Listing(failures))) };
        Ok(())
    })
}

/// See `datawarp.h`. If `size` is too small, returns `ERANGE` and keeps the path for the next call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dw_read_failed_stage(
    handle: *mut Listing,
    path: *mut c_char,
    size: c_int,
    ret_errno: *mut c_int,
) -> c_int {
    let read = value(|| {
        // SAFETY: NULL, or a handle from `dw_open_failed_stage` that is not closed.
        let listing = unsafe { handle.as_mut() }.ok_or(-libc::EINVAL)?;
        if path.is_null() || ret_errno.is_null() {
            return Err(-libc::EINVAL);
        }
        let Some((failed, number)) = listing.0.last().cloned() else {
            return Ok(0);
        };
        let failed = PathBuf::from(failed);
        let bytes = failed.as_os_str().as_bytes();
        let length = c_int::try_from(bytes.len()).map_err(|_| -libc::ERANGE)?;
        if length >= size {
            return Err(-libc::ERANGE);
        }
        // SAFETY: the path and its zero fit into the caller's buffer of `size` bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), path, bytes.len());
            *path.add(bytes.len()) = 0;
            *ret_errno = number;
        }
        listing.0.pop();
        Ok(length)
    });
    read.unwrap_or_else(|refused| refused)
}

/// See `datawarp.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dw_close_failed_stage(handle: *mut Listing) -> c_int {
    status(|| {
        if handle.is_null() {
            return Err(-libc::EINVAL);
        }
        // SAFETY: a handle from `dw_open_failed_stage`, used for the last time.
        drop(unsafe { Box::from_raw(handle) });
        Ok(())
    })
}
