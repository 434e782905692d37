//! Calls whose data the model does not see: libc transfers stream data internally, the CPU accesses
//! mappings. The open is charged, and the file is counted as unmodelled.

use std::ffi::{c_char, c_int, c_void};

use libc::{AT_FDCWD, DIR, FILE, size_t};

use crate::binding::{Opening, after_open, before_open};
use crate::hooks::hooks;
use crate::{delay, descriptors};

hooks! {
    [fopen, fopen64] {
        (path: *const c_char, mode: *const c_char) -> *mut FILE;
        before(opening) before_open(AT_FDCWD, path);
        // SAFETY: the program's mode, and the stream that was just opened.
        after(stream) unsafe { after_stream(stream, mode, opening) };
    }
    [freopen, freopen64] {
        (path: *const c_char, mode: *const c_char, stream: *mut FILE) -> *mut FILE;
        before(opening) before_open(AT_FDCWD, path);
        // SAFETY: the program's mode, and the stream that was just opened.
        after(reopened) unsafe { after_stream(reopened, mode, opening) };
    }
    [fdopen] {
        (fd: c_int, mode: *const c_char) -> *mut FILE;
        before delay::unmodelled(fd);
    }
    [fclose] {
        (stream: *mut FILE) -> c_int;
        // SAFETY: the program closes this stream only after this.
        before unsafe { forget_stream(stream) };
    }
    [opendir] {
        (path: *const c_char) -> *mut DIR;
        before delay::metadata_at(AT_FDCWD, path);
    }
    [mmap, mmap64] {
        (address: *mut c_void, length: size_t, protection: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void;
        after(mapping) after_mmap(mapping, flags, fd);
    }
}

/// # Safety
/// `stream` is null or an open stream; `mode` is the C string that opened it.
unsafe fn after_stream(stream: *mut FILE, mode: *const c_char, opening: Opening) {
    if stream.is_null() {
        return;
    }
    // SAFETY: guaranteed by the caller; fopen has read the mode, so it has a first byte.
    let (fd, first) = unsafe { (libc::fileno(stream), *mode) };
    after_open(fd, matches!(first.cast_unsigned(), b'w' | b'a'), opening);
    delay::unmodelled(fd);
}

/// # Safety
/// `stream` is an open stream.
unsafe fn forget_stream(stream: *mut FILE) {
    if !stream.is_null() {
        // SAFETY: guaranteed by the caller.
        descriptors::forget(unsafe { libc::fileno(stream) });
    }
}

fn after_mmap(mapping: *mut c_void, flags: c_int, fd: c_int) {
    if mapping != libc::MAP_FAILED && flags & libc::MAP_ANONYMOUS == 0 {
        delay::unmodelled(fd);
    }
}
