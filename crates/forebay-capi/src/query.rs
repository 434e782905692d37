//! From what C gives to a question, and from the answer to what C gets.

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use forebay_host::files;
use forebay_requests::{Answer, Name, Question, SOCKET_VARIABLE};

use crate::Refused;

/// Entries of the longest list: one without its NULL is found out before long.
const LIST_MAX: usize = 1 << 20;

/// The path as bytes, absolute as seen by this process now.
///
/// # Errors
/// `EINVAL` for NULL, `ENOENT` for nothing.
pub(crate) unsafe fn path(text: *const c_char) -> Refused<PathBuf> {
    if text.is_null() {
        return Err(-libc::EINVAL);
    }
    // SAFETY: the caller of the C function gives a string with a zero at its end.
    let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
    if bytes.is_empty() {
        return Err(-libc::ENOENT);
    }
    std::path::absolute(Path::new(OsStr::from_bytes(bytes))).map_err(|error| errno(&error))
}

/// The same, for a question.
pub(crate) unsafe fn name(text: *const c_char) -> Refused<Name> {
    // SAFETY: as for `path`.
    unsafe { path(text) }.map(|path| Name::from(path.as_path()))
}

/// A list that ends with NULL.
///
/// # Errors
/// `EINVAL` for NULL and for a list of nothing, `E2BIG` for one that has no end.
pub(crate) unsafe fn names(list: *const *const c_char) -> Refused<Vec<Name>> {
    if list.is_null() {
        return Err(-libc::EINVAL);
    }
    let mut names = Vec::new();
    for index in 0..LIST_MAX {
        // SAFETY: the caller gives an array with NULL at its end, which was not met yet.
        let text = unsafe { *list.add(index) };
        if text.is_null() {
            return match names.is_empty() {
                true => Err(-libc::EINVAL),
                false => Ok(names),
            };
        }
        // SAFETY: and each of its entries is a string.
        names.push(unsafe { name(text) }?);
    }
    Err(-libc::E2BIG)
}

/// Queries the job. `about`: the path that decides the error outside of a job.
///
/// # Errors
/// What the job refuses. Outside of a job no path is in a burst buffer: `ENOENT` where nothing is there, else
/// `EINVAL`. `ENOTCONN` if the job's `forebay run` is gone.
pub(crate) fn query_job(question: &Question, about: &Name) -> Refused<Answer> {
    static SOCKET: OnceLock<Option<PathBuf>> = OnceLock::new();
    let named = || std::env::var_os(SOCKET_VARIABLE).map(PathBuf::from);
    let Some(socket) = SOCKET.get_or_init(named) else {
        let path = PathBuf::from(about.clone());
        return Err(match files::status(&path) {
            Err(error) => errno(&error.source),
            Ok(_) => -libc::EINVAL,
        });
    };
    match forebay_requests::query(socket, question) {
        Ok(Answer::Refused(number)) => Err(-number),
        Ok(answer) => Ok(answer),
        Err(error) => Err(match error.source.raw_os_error() {
            // For want of descriptors or memory a later call may succeed.
            Some(number @ (libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EACCES)) => -number,
            _ => -libc::ENOTCONN,
        }),
    }
}

/// The negative number of an error.
pub(crate) fn errno(error: &std::io::Error) -> c_int {
    -error.raw_os_error().unwrap_or(libc::EIO)
}
