//! System calls issued directly: `forebay-pfsmodel-preload` links this crate and defines `open`, `read`
//! and others, so calls through libc would enter its hooks and be charged to the program. Changes
//! errno; hooks save and restore it. Unless stated otherwise, a function fails as its system call does.

use std::ffi::{CStr, c_int, c_long, c_void};
use std::io;
use std::mem::MaybeUninit;

const WORKING_DIRECTORY: c_long = libc::AT_FDCWD as c_long;

/// Issues a system call with up to six arguments. All are machine words: `syscall` is variadic, so
/// the upper half of a narrower argument would be arbitrary.
///
/// # Safety
/// The arguments match this call, and their pointers are valid for its accesses.
unsafe fn call<const N: usize>(number: c_long, arguments: [c_long; N]) -> io::Result<usize> {
    let mut word = [0; 6];
    word[..N].copy_from_slice(&arguments);
    // SAFETY: the caller guarantees the arguments; the kernel ignores those beyond the call's own.
    let result =
        unsafe { libc::syscall(number, word[0], word[1], word[2], word[3], word[4], word[5]) };
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// The address as an argument of a system call.
fn word<T>(address: *const T) -> c_long {
    address.expose_provenance() as c_long
}

/// Opens `path`, relative to the working directory, with close-on-exec.
pub fn open(path: &CStr, flags: c_int, mode: libc::mode_t) -> io::Result<c_int> {
    let flags = c_long::from(flags | libc::O_CLOEXEC);
    let arguments = [WORKING_DIRECTORY, word(path.as_ptr()), flags, c_long::from(mode)];
    // SAFETY: the path is a live C string; the kernel keeps no pointer. A descriptor fits c_int.
    unsafe { call(libc::SYS_openat, arguments) }.map(|descriptor| descriptor as c_int)
}

/// Closes a descriptor that Forebay opened.
pub fn close(descriptor: c_int) {
    // SAFETY: passes a number only; callers close only what they opened. A failure has no remedy.
    let _ = unsafe { call(libc::SYS_close, [c_long::from(descriptor)]) };
}

/// Sets the length of a file and reserves its space, so that a full file system is reported here
/// and not later by SIGBUS.
///
/// # Errors
/// The errors of `ftruncate`, and `ENOSPC`.
pub fn set_length(descriptor: c_int, length_bytes: u64) -> io::Result<()> {
    let (descriptor, length) = (c_long::from(descriptor), length_bytes as c_long);
    // SAFETY: passes numbers only.
    unsafe { call(libc::SYS_ftruncate, [descriptor, length]) }?;
    // SAFETY: passes numbers only: mode 0, from offset 0.
    match unsafe { call(libc::SYS_fallocate, [descriptor, 0, 0, length]) } {
        Err(error) if error.raw_os_error() != Some(libc::EOPNOTSUPP) => Err(error),
        _ => Ok(()),
    }
}

/// Maps `length` bytes of a file as shared memory; new shared memory if `descriptor` is `None`.
pub fn map_shared(descriptor: Option<c_int>, length: usize) -> io::Result<*mut c_void> {
    let (flags, descriptor) = match descriptor {
        Some(descriptor) => (libc::MAP_SHARED, descriptor),
        None => (libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1),
    };
    let protection = c_long::from(libc::PROT_READ | libc::PROT_WRITE);
    let arguments = [0, length as c_long, protection, flags.into(), descriptor.into(), 0];
    // SAFETY: requests a new mapping at an address that the kernel chooses; existing memory is not touched.
    unsafe { call(libc::SYS_mmap, arguments) }.map(std::ptr::with_exposed_provenance_mut)
}

/// Releases a mapping.
///
/// # Safety
/// `address` and `length` are those of one [`map_shared`], and no reference to the memory remains.
pub unsafe fn unmap(address: *mut c_void, length: usize) {
    // SAFETY: the caller guarantees that this is a mapping of map_shared and unused.
    let _ = unsafe { call(libc::SYS_munmap, [word(address), length as c_long]) };
}

/// Type, size, device and inode of an open file.
pub fn status(descriptor: c_int) -> io::Result<libc::stat> {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the kernel writes one struct stat, which fits the buffer.
    unsafe { call(libc::SYS_fstat, [descriptor.into(), word(status.as_mut_ptr())]) }?;
    // SAFETY: the call succeeded, so the struct is initialized.
    Ok(unsafe { status.assume_init() })
}

/// Current position of an open file.
///
/// # Errors
/// `ESPIPE` if the file has no position.
pub fn position(descriptor: c_int) -> io::Result<u64> {
    let arguments = [descriptor.into(), 0, libc::SEEK_CUR.into()];
    // SAFETY: passes numbers only.
    unsafe { call(libc::SYS_lseek, arguments) }.map(|position| position as u64)
}

/// Flags of an open file (`O_APPEND` and others).
///
/// # Errors
/// `EBADF`.
pub fn open_flags(descriptor: c_int) -> io::Result<c_int> {
    let arguments = [descriptor.into(), libc::F_GETFL.into()];
    // SAFETY: passes numbers only.
    unsafe { call(libc::SYS_fcntl, arguments) }.map(|flags| flags as c_int)
}

/// Reads a symbolic link into `target`. Returns the length; a longer link is truncated.
pub fn read_link(path: &CStr, target: &mut [u8]) -> io::Result<usize> {
    let room = target.len() as c_long;
    let arguments = [WORKING_DIRECTORY, word(path.as_ptr()), word(target.as_mut_ptr()), room];
    // SAFETY: path is a C string; the kernel writes at most `room` bytes into the buffer.
    unsafe { call(libc::SYS_readlinkat, arguments) }
}

/// Reads the path of an open descriptor from /proc into `target`. Returns its length.
///
/// # Errors
/// Errors such as `EBADF`, or /proc is not mounted.
pub fn descriptor_path(descriptor: c_int, target: &mut [u8]) -> io::Result<usize> {
    let mut name = [0u8; 32];
    // 32 bytes hold the prefix, any i32 and the final zero.
    let _ = io::Write::write_fmt(&mut &mut name[..31], format_args!("/proc/self/fd/{descriptor}"));
    let name =
        CStr::from_bytes_until_nul(&name).map_err(|_| io::Error::from_raw_os_error(libc::EBADF))?;
    read_link(name, target)
}

/// Reads the working directory into `target`. Returns its length.
///
/// # Errors
/// `ENOENT` if it was removed, `ERANGE` if it is longer than `target`.
pub fn working_directory(target: &mut [u8]) -> io::Result<usize> {
    let arguments = [word(target.as_mut_ptr()), target.len() as c_long];
    // SAFETY: the kernel writes at most target.len() bytes; the returned length includes the final zero.
    unsafe { call(libc::SYS_getcwd, arguments) }.map(|length| length.saturating_sub(1))
}

/// Reads an extended attribute of an open file. Returns its length.
///
/// # Errors
/// `ENODATA` without the attribute, `ERANGE` if it does not fit.
pub fn descriptor_attribute(descriptor: c_int, name: &CStr, value: &mut [u8]) -> io::Result<usize> {
    let room = value.len() as c_long;
    let arguments = [descriptor.into(), word(name.as_ptr()), word(value.as_mut_ptr()), room];
    // SAFETY: name is a C string; the kernel writes at most `room` bytes.
    unsafe { call(libc::SYS_fgetxattr, arguments) }
}

/// Reads an extended attribute by path. Follows symlinks. Returns its length.
///
/// # Errors
/// `ENODATA` without the attribute, `ERANGE` if it does not fit.
pub fn path_attribute(path: &CStr, name: &CStr, value: &mut [u8]) -> io::Result<usize> {
    let room = value.len() as c_long;
    let arguments = [word(path.as_ptr()), word(name.as_ptr()), word(value.as_mut_ptr()), room];
    // SAFETY: both names are C strings; the kernel writes at most `room` bytes.
    unsafe { call(libc::SYS_getxattr, arguments) }
}

/// Adds an extended attribute to an open file.
///
/// # Errors
/// `EEXIST` if the attribute exists, `ENOTSUP` if the file system has no attributes.
pub fn create_descriptor_attribute(descriptor: c_int, name: &CStr, value: &[u8]) -> io::Result<()> {
    let (bytes, length) = (word(value.as_ptr()), value.len() as c_long);
    let arguments =
        [descriptor.into(), word(name.as_ptr()), bytes, length, libc::XATTR_CREATE.into()];
    // SAFETY: name is a C string; the kernel reads `length` bytes of the value.
    unsafe { call(libc::SYS_fsetxattr, arguments) }.map(drop)
}

/// Sets an extended attribute by path. Follows symlinks. Replaces an older value.
///
/// # Errors
/// `ENOTSUP` if the file system has no attributes, `EACCES`.
pub fn set_path_attribute(path: &CStr, name: &CStr, value: &[u8]) -> io::Result<()> {
    let (bytes, length) = (word(value.as_ptr()), value.len() as c_long);
    let arguments = [word(path.as_ptr()), word(name.as_ptr()), bytes, length, 0];
    // SAFETY: both names are C strings; the kernel reads `length` bytes of the value.
    unsafe { call(libc::SYS_setxattr, arguments) }.map(drop)
}

/// Removes an extended attribute by path. Follows symlinks.
///
/// # Errors
/// `ENODATA` if there is none.
pub fn remove_path_attribute(path: &CStr, name: &CStr) -> io::Result<()> {
    // SAFETY: both names are C strings.
    unsafe { call(libc::SYS_removexattr, [word(path.as_ptr()), word(name.as_ptr())]) }.map(drop)
}

/// The process id, from the kernel: old libcs cache it across `clone`.
pub fn process() -> u32 {
    // SAFETY: no arguments; never fails, and process ids are below 2^22.
    unsafe { call(libc::SYS_getpid, []) }.unwrap_or(0) as u32
}

/// Writes a message to standard error without entering hooks. Ignores failures.
pub fn complain(message: &str) {
    let arguments = [libc::STDERR_FILENO.into(), word(message.as_ptr()), message.len() as c_long];
    // SAFETY: the kernel reads the bytes of the message.
    let _ = unsafe { call(libc::SYS_write, arguments) };
}

/// `CLOCK_MONOTONIC` in nanoseconds, the only clock of the model.
pub fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec. clock_gettime is no I/O function, so no preload charges it.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    // Monotonic time is never negative.
    (now.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(now.tv_nsec as u64)
}

/// Sleeps until `CLOCK_MONOTONIC` reaches `until_ns`. Continues after signals.
pub fn sleep_until(until_ns: u64) {
    // Both parts fit: a u64 of nanoseconds has less than 2^35 seconds.
    let until = libc::timespec {
        tv_sec: (until_ns / 1_000_000_000) as i64,
        tv_nsec: (until_ns % 1_000_000_000) as i64,
    };
    loop {
        // SAFETY: reads one timespec; absolute sleeps need no remainder.
        let error = unsafe {
            libc::clock_nanosleep(
                libc::CLOCK_MONOTONIC,
                libc::TIMER_ABSTIME,
                &raw const until,
                std::ptr::null_mut(),
            )
        };
        if error != libc::EINTR {
            return;
        }
    }
}
