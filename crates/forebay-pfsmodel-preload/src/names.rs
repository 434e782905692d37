//! Which paths are emulated, for calls without a descriptor. Decides by the absolute path, `.` and `..` resolved by name;
//! never follows links, so a call through a link counts at the link's own place: opening a directory to find its real
//! path would take a descriptor number, which another thread's `open` must not see.

use std::ffi::{CStr, c_char, c_int};

use forebay_pfsmodel::{State, kernel, paths};

/// Room for one path; one at a time, because hooks may run on a small signal stack.
pub(crate) type Buffer = [u8; paths::PATH_MAX];

/// True if a path names something in an emulated directory.
pub(crate) fn is_emulated(state: &State, directory: c_int, path: *const c_char) -> bool {
    if path.is_null() {
        return false;
    }
    // SAFETY: the program passes a C string, or the call it makes would be undefined in libc as well.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    if path.is_empty() {
        return false;
    }
    if paths::is_plain(path) {
        return state.covers(path);
    }
    let mut buffer: Buffer = [0; paths::PATH_MAX];
    absolute(directory, path, &mut buffer).is_some_and(|length| state.covers(&buffer[..length]))
}

/// Puts the absolute form of a path into `buffer`; `None` if it has none (a removed working directory, a
/// descriptor that is none, too long).
pub(crate) fn absolute(directory: c_int, path: &[u8], buffer: &mut Buffer) -> Option<usize> {
    let base = match (path.first(), directory) {
        (Some(b'/'), _) => 0,
        (_, libc::AT_FDCWD) => kernel::working_directory(buffer).ok()?,
        (_, directory) => kernel::descriptor_path(directory, buffer).ok()?,
    };
    paths::append(buffer, base, path)
}
