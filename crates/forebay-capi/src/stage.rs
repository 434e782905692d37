//! Functions that stage, query, wait and terminate.
//! Never copies a file: the `forebay run` of the job does. A wait has no limit.

use std::ffi::{c_char, c_int, c_uint};

use forebay_requests::{Action, Answer, Name, Question, Shape};

use crate::query::{name, names, query_job};
use crate::{ErrnoResult, status};

/// Values of `enum dw_stage_type`. A C caller may pass any number.
const IMMEDIATE: c_uint = 0;
const AT_JOB_END: c_uint = 1;
const REVOKE: c_uint = 2;
const ACTIVATE: c_uint = 3;

/// One path, or all paths of a list.
unsafe fn paths(shape: Shape, path: *const c_char) -> ErrnoResult<Vec<Name>> {
    match shape {
        // SAFETY: the header requires a valid list.
        Shape::List => unsafe { names(path.cast()) },
        // SAFETY: the header requires a valid path.
        Shape::File | Shape::Directory => unsafe { name(path) }.map(|name| vec![name]),
    }
}

unsafe fn stage_in(shape: Shape, inner: *const c_char, outer: *const c_char) -> c_int {
    status(|| {
        // SAFETY: the header requires valid arguments.
        let (inner, outer) = unsafe { (name(inner)?, paths(shape, outer)?) };
        let about = inner.clone();
        let question = Question::StageIn { shape, inner, outer };
        query_job(&question, &about).map(drop)
    })
}

unsafe fn stage_out(
    shape: Shape,
    inner: *const c_char,
    outer: *const c_char,
    when: c_uint,
) -> c_int {
    let action = match when {
        REVOKE => Some(Action::Revoke),
        ACTIVATE => Some(Action::Activate),
        IMMEDIATE | AT_JOB_END => None,
        _ => return -libc::EINVAL,
    };
    if let Some(action) = action {
        // SAFETY: the header requires valid arguments.
        return status(|| unsafe { about(action, shape, inner) }.map(drop));
    }
    status(|| {
        // SAFETY: the header requires valid arguments.
        let (inner, outer) = unsafe { (paths(shape, inner)?, name(outer)?) };
        let about = inner[0].clone();
        let question = Question::StageOut { shape, at_job_end: when == AT_JOB_END, inner, outer };
        query_job(&question, &about).map(drop)
    })
}

unsafe fn about(action: Action, shape: Shape, inner: *const c_char) -> ErrnoResult<Answer> {
    // SAFETY: the header requires valid arguments.
    let inner = unsafe { paths(shape, inner) }?;
    let about = inner[0].clone();
    let question = Question::About { action, shape, inner };
    query_job(&question, &about)
}

unsafe fn query(shape: Shape, inner: *const c_char, into: [*mut c_int; 4]) -> c_int {
    status(|| {
        if into.iter().any(|count| count.is_null()) {
            return Err(-libc::EINVAL);
        }
        // SAFETY: the header requires valid arguments.
        let Answer::Counts(counts) = unsafe { about(Action::Query, shape, inner) }? else {
            return Err(-libc::EIO);
        };
        let counts = [counts.complete, counts.pending, counts.deferred, counts.failed];
        for (count, into) in counts.into_iter().zip(into) {
            // SAFETY: not NULL, and the header requires a pointer to an int.
            unsafe { *into = c_int::try_from(count).unwrap_or(c_int::MAX) };
        }
        Ok(())
    })
}

/// Functions of the header that differ only in their shape.
macro_rules! functions {
    ($shape:expr, $stage_in:ident, $stage_out:ident, $query:ident, $wait:ident, $terminate:ident, $in:ty, $path:ty) => {
        #[doc = "See `datawarp.h`."]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $stage_in(inner: *const c_char, outer: $in) -> c_int {
            // SAFETY: the header requires valid arguments.
            unsafe { stage_in($shape, inner, outer.cast()) }
        }

        #[doc = "See `datawarp.h`."]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $stage_out(
            inner: $path,
            outer: *const c_char,
            when: c_uint,
        ) -> c_int {
            // SAFETY: the header requires valid arguments.
            unsafe { stage_out($shape, inner.cast(), outer, when) }
        }

        #[doc = "See `datawarp.h`."]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $query(
            inner: $path,
            complete: *mut c_int,
            pending: *mut c_int,
            deferred: *mut c_int,
            failed: *mut c_int,
        ) -> c_int {
            // SAFETY: the header requires valid arguments.
            unsafe { query($shape, inner.cast(), [complete, pending, deferred, failed]) }
        }

        #[doc = "See `datawarp.h`."]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $wait(inner: $path) -> c_int {
            // SAFETY: the header requires valid arguments.
            status(|| unsafe { about(Action::Wait, $shape, inner.cast()) }.map(drop))
        }

        #[doc = "See `datawarp.h`."]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $terminate(inner: $path) -> c_int {
            // SAFETY: the header requires valid arguments.
            status(|| unsafe { about(Action::Terminate, $shape, inner.cast()) }.map(drop))
        }
    };
}

functions!(
    Shape::File,
    dw_stage_file_in,
    dw_stage_file_out,
    dw_query_file_stage,
    dw_wait_file_stage,
    dw_terminate_file_stage,
    *const c_char,
    *const c_char
);
functions!(
    Shape::Directory,
    dw_stage_directory_in,
    dw_stage_directory_out,
    dw_query_directory_stage,
    dw_wait_directory_stage,
    dw_terminate_directory_stage,
    *const c_char,
    *const c_char
);
functions!(
    Shape::List,
    dw_stage_list_in,
    dw_stage_list_out,
    dw_query_list_stage,
    dw_wait_list_stage,
    dw_terminate_list_stage,
    *const *const c_char,
    *const *const c_char
);
