//! Converts C arguments to requests and answers to C results.
//! Reads the variable of the socket once, at the first call. Waits for an answer without a limit.

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use forebay_host::{clock, files};
use forebay_requests::{Answer, Name, Question, SOCKET_VARIABLE};

use crate::ErrnoResult;

/// The maximum length of a list, to detect lists without a final NULL.
const LIST_MAX: usize = 1 << 20;

/// The path, resolved against the current directory if it is relative.
///
/// # Errors
/// `EINVAL` for NULL, `ENOENT` for an empty path.
pub(crate) unsafe fn path(text: *const c_char) -> ErrnoResult<PathBuf> {
    if text.is_null() {
        return Err(-libc::EINVAL);
    }
    // SAFETY: the caller of the C function passes a zero-terminated string.
    let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
    if bytes.is_empty() {
        return Err(-libc::ENOENT);
    }
    std::path::absolute(Path::new(OsStr::from_bytes(bytes))).map_err(|error| errno(&error))
}

/// The same, as part of a request.
pub(crate) unsafe fn name(text: *const c_char) -> ErrnoResult<Name> {
    // SAFETY: guaranteed by the caller, as for `path`.
    unsafe { path(text) }.map(|path| Name::from(path.as_path()))
}

/// The names of a list that ends with NULL.
///
/// # Errors
/// `EINVAL` for NULL and for an empty list, `E2BIG` for a list that is too long.
pub(crate) unsafe fn names(list: *const *const c_char) -> ErrnoResult<Vec<Name>> {
    if list.is_null() {
        return Err(-libc::EINVAL);
    }
    let mut names = Vec::new();
    for index in 0..LIST_MAX {
        // SAFETY: the caller passes an array with NULL at its end, which is not reached yet.
        let text = unsafe { *list.add(index) };
        if text.is_null() {
            return match names.is_empty() {
                true => Err(-libc::EINVAL),
                false => Ok(names),
            };
        }
        // SAFETY: each entry before the end is a zero-terminated string.
        names.push(unsafe { name(text) }?);
    }
    Err(-libc::E2BIG)
}

/// The pause before a request that was refused for now is repeated.
const REFUSED_PAUSE: Duration = Duration::from_millis(50);

/// Queries the job. The path `about` determines the error outside a job.
///
/// # Errors
/// The error of the job. Outside a job no path is in a burst buffer: `ENOENT` for a missing path,
/// otherwise `EINVAL`. `E2BIG` for too long a list. `ENOTCONN` if the job's `forebay run` has ended.
pub(crate) fn query_job(question: &Question, about: &Name) -> ErrnoResult<Answer> {
    static SOCKET: OnceLock<Option<PathBuf>> = OnceLock::new();
    let named = || std::env::var_os(SOCKET_VARIABLE).map(PathBuf::from);
    let Some(socket) = SOCKET.get_or_init(named) else {
        let path = PathBuf::from(about.clone());
        return Err(match files::status(&path) {
            Err(error) => errno(&error.source),
            Ok(_) => -libc::EINVAL,
        });
    };
    let answer = loop {
        match forebay_requests::query(socket, question) {
            // Too many programs wait already.
            Ok(Answer::Refused(libc::EAGAIN)) => clock::sleep(REFUSED_PAUSE),
            answer => break answer,
        }
    };
    match answer {
        Ok(Answer::Refused(number)) => Err(-number),
        Ok(answer) => Ok(answer),
        Err(error) => Err(match error.source.raw_os_error() {
            // Without descriptors or memory, a later call may succeed.
            None if error.source.kind() == ErrorKind::ArgumentListTooLong => -libc::E2BIG,
            Some(number @ (libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EACCES)) => -number,
            _ => -libc::ENOTCONN,
        }),
    }
}

/// The negative errno of an error.
pub(crate) fn errno(error: &std::io::Error) -> c_int {
    -error.raw_os_error().unwrap_or(libc::EIO)
}
