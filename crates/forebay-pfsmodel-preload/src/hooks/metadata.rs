//! Calls that use the metadata server.
//! Each is charged before it, also if it then fails. A path counts where its name is: links are not followed.

use std::ffi::{c_char, c_int, c_uint, c_void};

use libc::{AT_FDCWD, gid_t, mode_t, size_t, ssize_t, uid_t};

use crate::delay::{metadata_at, metadata_at_either, metadata_of};
use crate::hooks::hooks;

hooks! {
    [stat, stat64, lstat, lstat64] {
        (path: *const c_char, status: *mut c_void) -> c_int;
        before metadata_at(AT_FDCWD, path);
    }
    [fstat, fstat64] {
        (fd: c_int, status: *mut c_void) -> c_int;
        before metadata_of(fd);
    }
    [fstatat, fstatat64] {
        (directory: c_int, path: *const c_char, status: *mut c_void, flags: c_int) -> c_int;
        before metadata_at(directory, path);
    }
    [statx] {
        (directory: c_int, path: *const c_char, flags: c_int, mask: c_uint, status: *mut c_void) -> c_int;
        before metadata_at(directory, path);
    }
    // Used by programs built before glibc 2.33.
    [__xstat, __xstat64, __lxstat, __lxstat64] {
        (version: c_int, path: *const c_char, status: *mut c_void) -> c_int;
        before metadata_at(AT_FDCWD, path);
    }
    [__fxstat, __fxstat64] {
        (version: c_int, fd: c_int, status: *mut c_void) -> c_int;
        before metadata_of(fd);
    }
    [__fxstatat, __fxstatat64] {
        (version: c_int, directory: c_int, path: *const c_char, status: *mut c_void, flags: c_int) -> c_int;
        before metadata_at(directory, path);
    }
    [access] {
        (path: *const c_char, mode: c_int) -> c_int;
        before metadata_at(AT_FDCWD, path);
    }
    [faccessat] {
        (directory: c_int, path: *const c_char, mode: c_int, flags: c_int) -> c_int;
        before metadata_at(directory, path);
    }
    [readlink] {
        (path: *const c_char, target: *mut c_char, room: size_t) -> ssize_t;
        before metadata_at(AT_FDCWD, path);
    }
    [readlinkat] {
        (directory: c_int, path: *const c_char, target: *mut c_char, room: size_t) -> ssize_t;
        before metadata_at(directory, path);
    }
    [unlink, rmdir, remove] {
        (path: *const c_char) -> c_int;
        before metadata_at(AT_FDCWD, path);
    }
    [unlinkat] {
        (directory: c_int, path: *const c_char, flags: c_int) -> c_int;
        before metadata_at(directory, path);
    }
    [rename, link] {
        (from: *const c_char, to: *const c_char) -> c_int;
        before metadata_at_either((AT_FDCWD, from), (AT_FDCWD, to));
    }
    [renameat] {
        (from_directory: c_int, from: *const c_char, to_directory: c_int, to: *const c_char) -> c_int;
        before metadata_at_either((from_directory, from), (to_directory, to));
    }
    [renameat2] {
        (from_directory: c_int, from: *const c_char, to_directory: c_int, to: *const c_char, flags: c_uint) -> c_int;
        before metadata_at_either((from_directory, from), (to_directory, to));
    }
    [linkat] {
        (from_directory: c_int, from: *const c_char, to_directory: c_int, to: *const c_char, flags: c_int) -> c_int;
        before metadata_at_either((from_directory, from), (to_directory, to));
    }
    [symlink] {
        (target: *const c_char, path: *const c_char) -> c_int;
        before metadata_at(AT_FDCWD, path);
    }
    [symlinkat] {
        (target: *const c_char, directory: c_int, path: *const c_char) -> c_int;
        before metadata_at(directory, path);
    }
    [truncate, truncate64] {
        (path: *const c_char, length: i64) -> c_int;
        before metadata_at(AT_FDCWD, path);
    }
    [ftruncate, ftruncate64] {
        (fd: c_int, length: i64) -> c_int;
        before metadata_of(fd);
    }
    [fallocate, fallocate64] {
        (fd: c_int, mode: c_int, offset: i64, length: i64) -> c_int;
        before metadata_of(fd);
    }
    // On file systems without fallocate, libc writes zeros internally, which the model does not see.
    [posix_fallocate, posix_fallocate64] {
        (fd: c_int, offset: i64, length: i64) -> c_int;
        before metadata_of(fd);
    }
    [chmod] {
        (path: *const c_char, mode: mode_t) -> c_int;
        before metadata_at(AT_FDCWD, path);
    }
    [fchmod] {
        (fd: c_int, mode: mode_t) -> c_int;
        before metadata_of(fd);
    }
    [fchmodat] {
        (directory: c_int, path: *const c_char, mode: mode_t, flags: c_int) -> c_int;
        before metadata_at(directory, path);
    }
    [chown, lchown] {
        (path: *const c_char, user: uid_t, group: gid_t) -> c_int;
        before metadata_at(AT_FDCWD, path);
    }
    [fchown] {
        (fd: c_int, user: uid_t, group: gid_t) -> c_int;
        before metadata_of(fd);
    }
    [fchownat] {
        (directory: c_int, path: *const c_char, user: uid_t, group: gid_t, flags: c_int) -> c_int;
        before metadata_at(directory, path);
    }
    [utime, utimes, lutimes] {
        (path: *const c_char, times: *const c_void) -> c_int;
        before metadata_at(AT_FDCWD, path);
    }
    [utimensat] {
        (directory: c_int, path: *const c_char, times: *const c_void, flags: c_int) -> c_int;
        before metadata_at(directory, path);
    }
    [futimesat] {
        (directory: c_int, path: *const c_char, times: *const c_void) -> c_int;
        before metadata_at(directory, path);
    }
    [futimens, futimes] {
        (fd: c_int, times: *const c_void) -> c_int;
        before metadata_of(fd);
    }
}
