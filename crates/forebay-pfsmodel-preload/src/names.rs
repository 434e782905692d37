//! Decides which paths are emulated, for calls without a descriptor. Uses the absolute path and resolves `.`
//! and `..` by name. Never follows links, so a call through a link counts at the path of the link. To find a
//! real path it would have to open the directory, and other threads would see that descriptor number.

use std::ffi::{CStr, c_char, c_int};

use forebay_pfsmodel::{State, kernel, paths};

/// Space for one path. Only one exists at a time, because hooks may run on a small signal stack.
pub(crate) type Buffer = [u8; paths::PATH_MAX];

/// True if a path names something in an emulated directory.
pub(crate) fn is_emulated(state: &State, directory: c_int, path: *const c_char) -> bool {
    if path.is_null() {
        return false;
    }
    // SAFETY: the program passes a C string; otherwise its call would be undefined in libc too.
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

/// Writes the absolute form of a path to `buffer`. `None` if there is none: a removed working
/// directory, an invalid descriptor, or too long.
pub(crate) fn absolute(directory: c_int, path: &[u8], buffer: &mut Buffer) -> Option<usize> {
    let base = match (path.first(), directory) {
        (Some(b'/'), _) => 0,
        (_, libc::AT_FDCWD) => kernel::working_directory(buffer).ok()?,
        (_, directory) => kernel::descriptor_path(directory, buffer).ok()?,
    };
    paths::append(buffer, base, path)
}
