//! Finds the next function with the same name: that of libc or of a later preload.

use std::ffi::{CStr, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A symbol that is looked up at its first call.
pub(crate) struct Next {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Next {
    /// `name` ends in a zero byte.
    pub(crate) const fn named(name: &'static str) -> Self {
        let name = match CStr::from_bytes_with_nul(name.as_bytes()) {
            Ok(name) => name,
            Err(_) => panic!("a symbol name ends in its only zero byte"),
        };
        Self { name, address: AtomicPtr::new(null_mut()) }
    }

    /// Address of the function; null if there is none (an old libc). Two threads may look it up at
    /// the same time, with the same result.
    pub(crate) fn address(&self) -> *mut c_void {
        let known = self.address.load(Ordering::Relaxed);
        if known.is_null() { self.look_up() } else { known }
    }

    #[cold]
    fn look_up(&self) -> *mut c_void {
        // SAFETY: the name is a C string; RTLD_NEXT searches the objects loaded after this one.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.address.store(found, Ordering::Relaxed);
        found
    }
}

/// The return value of a failed C function.
pub(crate) trait Failure {
    /// -1 or a null pointer.
    const FAILED: Self;
}

impl Failure for std::ffi::c_int {
    const FAILED: Self = -1;
}

impl Failure for isize {
    const FAILED: Self = -1;
}

impl<T> Failure for *mut T {
    const FAILED: Self = null_mut();
}
