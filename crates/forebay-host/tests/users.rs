//! Tests the name of the user. Replaces the C library's query by an answer as from LDAP or SSSD.

use std::ffi::{CStr, c_char, c_int};

use forebay_host::users;

#[unsafe(no_mangle)]
extern "C" fn getpwuid_r(
    uid: libc::uid_t,
    entry: *mut libc::passwd,
    _buffer: *mut c_char,
    _buffer_bytes: usize,
    found: *mut *mut libc::passwd,
) -> c_int {
    let text = |text: &'static CStr| text.as_ptr().cast_mut();
    // SAFETY: the caller passes valid pointers to an entry and to a result pointer.
    unsafe {
        entry.write(libc::passwd {
            pw_name: text(c"ldap-only"),
            pw_passwd: text(c"x"),
            pw_uid: uid,
            pw_gid: uid,
            pw_gecos: text(c""),
            pw_dir: text(c"/"),
            pw_shell: text(c"/bin/sh"),
        });
        found.write(entry);
    }
    0
}

#[test]
fn user_name_without_variables_is_that_of_the_name_services() {
    for name in ["USER", "LOGNAME"] {
        // SAFETY: no other thread of this test reads the environment.
        unsafe { std::env::remove_var(name) };
    }
    assert_eq!(users::user_name(), "ldap-only");
}
