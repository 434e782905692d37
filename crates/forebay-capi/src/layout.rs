//! The placement of data, and calls for the whole instance.

use std::ffi::{CString, c_char, c_int, c_uint};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use forebay_host::files;
use forebay_requests::{Answer, Name, Question};

use crate::query::{errno, name, path, query_job};
use crate::{Refused, status, value};

/// The number of servers: only the node itself.
const WIDTH: c_int = 1;
const FIRST: c_int = 0;

/// The stripe size in bytes, and whether the layout can be set.
fn layout(about: &Name) -> Refused<(c_int, bool)> {
    match query_job(&Question::Layout(about.clone()), about)? {
        Answer::Layout { stripe_bytes, may_be_set } => {
            Ok((c_int::try_from(stripe_bytes).unwrap_or(c_int::MAX), may_be_set))
        }
        _ => Err(-libc::EIO),
    }
}

/// The path of an open file.
fn opened(fd: c_int) -> Refused<Name> {
    let link = Path::new("/proc/self/fd").join(fd.to_string());
    match files::read_link(&link) {
        Ok(path) => Ok(Name::from(path.as_path())),
        Err(error) if error.is_not_found() => Err(-libc::EBADF),
        Err(error) => Err(errno(&error.source)),
    }
}

/// See `datawarp.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dw_get_stripe_configuration(
    fd: c_int,
    stripe_size: *mut c_int,
    stripe_width: *mut c_int,
    starting_index: *mut c_int,
) -> c_int {
    status(|| {
        let into = [stripe_size, stripe_width, starting_index];
        if into.iter().any(|pointer| pointer.is_null()) {
            return Err(-libc::EINVAL);
        }
        let (bytes, _) = layout(&opened(fd)?)?;
        for (into, value) in into.into_iter().zip([bytes, WIDTH, FIRST]) {
            // SAFETY: not NULL, and the header requires a pointer to an int.
            unsafe { *into = value };
        }
        Ok(())
    })
}

/// See `datawarp.h`. Accepts only the existing values, because there is one server.
#[unsafe(no_mangle)]
pub extern "C" fn dw_set_stripe_configuration(
    fd: c_int,
    stripe_size: c_int,
    stripe_width: c_int,
) -> c_int {
    status(|| {
        let (bytes, may_be_set) = layout(&opened(fd)?)?;
        match may_be_set && stripe_size == bytes && stripe_width == WIDTH {
            true => Ok(()),
            false => Err(-libc::EINVAL),
        }
    })
}

/// See `datawarp.h`. There is one metadata server, so each key returns the root.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dw_get_mds_path(root: *const c_char, _key: u64) -> *mut c_char {
    let path = value(|| {
        // SAFETY: the header requires a valid argument.
        let root = unsafe { path(root) }?;
        layout(&Name::from(root.as_path()))?;
        let text = CString::new(root.as_os_str().as_bytes()).map_err(|_| -libc::EINVAL)?;
        allocated(&text)
    });
    path.unwrap_or_else(|refused| {
        // SAFETY: the address of this thread's errno.
        unsafe { *libc::__errno_location() = -refused };
        std::ptr::null_mut()
    })
}

/// See `datawarp.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dw_set_stage_concurrency(instance: *const c_char, most: c_uint) -> c_int {
    status(|| {
        // SAFETY: the header requires a valid argument.
        let instance = unsafe { name(instance) }?;
        query_job(&Question::Concurrency(instance.clone(), most), &instance).map(drop)
    })
}

/// See `datawarp.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dw_get_accounting_data_json(
    instance: *const c_char,
    ecode: *mut c_int,
) -> *mut c_char {
    let text = value(|| {
        // SAFETY: the header requires a valid argument.
        let instance = unsafe { name(instance) }?;
        let Answer::Accounting(text) =
            query_job(&Question::Accounting(instance.clone()), &instance)?
        else {
            return Err(-libc::EIO);
        };
        allocated(&CString::new(text).map_err(|_| -libc::EIO)?)
    });
    if !ecode.is_null() {
        // SAFETY: not NULL, and the header requires a pointer to an int.
        unsafe { *ecode = text.err().unwrap_or(0) };
    }
    text.unwrap_or(std::ptr::null_mut())
}

/// See `datawarp.h`. The function is for files in a cache. Forebay has no cache, so there is no
/// copy to wait for.
#[unsafe(no_mangle)]
pub extern "C" fn dw_wait_sync_complete(fd: c_int) -> c_int {
    status(|| {
        opened(fd)?;
        Err(-libc::EINVAL)
    })
}

/// A copy of the text that the caller frees with free(3).
fn allocated(text: &CString) -> Refused<*mut c_char> {
    // SAFETY: the text is zero-terminated.
    let copy = unsafe { libc::strdup(text.as_ptr()) };
    match copy.is_null() {
        true => Err(-libc::ENOMEM),
        false => Ok(copy),
    }
}
