//! Sets the I/O and processor priority of threads.

use std::path::Path;

use crate::{Result, with_context};

/// From linux/ioprio.h. The disk serves the idle class only if there are no other requests. Classes
/// are shifted to their bits.
const IDLE: libc::c_int = 3 << 13;
const WHO_PROCESS: libc::c_int = 1;
const THIS_THREAD: libc::c_int = 0;
const NO_CLASS: libc::c_int = 0;
/// About a tenth of the default weight. With the lowest priority, 19 (about a seventieth), busy
/// processors copy so little that stage-out starts with all data.
const NICE: i32 = 10;

/// Lowers the I/O and processor priority of this thread and of threads it starts later. Disk
/// schedulers without I/O classes ignore the I/O priority.
pub fn lower_priority() -> Result<()> {
    set_idle_io_class()?;
    let here = Path::new("this thread");
    let nice = rustix::process::setpriority_process(None, NICE);
    with_context(nice, "lower the priority of", here)
}

/// Lowers the I/O priority of this thread and of threads it starts later.
pub fn set_idle_io_class() -> Result<()> {
    let set = set_class(IDLE);
    with_context(set, "lower the I/O priority of", Path::new("this thread"))
}

/// Restores the I/O priority of this thread. Users cannot raise the processor priority again.
pub fn set_default_io_class() -> Result<()> {
    let set = set_class(NO_CLASS);
    with_context(set, "raise the I/O priority of", Path::new("this thread"))
}

/// Sets the I/O class of the calling thread.
fn set_class(class: libc::c_int) -> std::io::Result<()> {
    // SAFETY: the call takes three numbers and no memory.
    match unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, THIS_THREAD, class) } {
        -1 => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    }
}
