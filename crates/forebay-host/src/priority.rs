//! How much a thread gets where others want the same.

use std::path::Path;

use crate::{Result, on};

/// Of linux/ioprio.h: the class whose requests are served when there are no others, at its place in the
/// number; and the calling thread.
const IDLE: libc::c_int = 3 << 13;
const WHO_PROCESS: libc::c_int = 1;
const LEAST_NICE: i32 = 19;

/// From here on this thread, and those that it starts, leaves processor and disk to all others. A disk whose
/// scheduler knows no classes serves it as any other.
///
/// # Errors
/// If the kernel refuses.
pub fn yield_to_others() -> Result<()> {
    let here = Path::new("this thread");
    // SAFETY: the call takes three numbers and no memory.
    let set = match unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, IDLE) } {
        -1 => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    };
    on(set, "lower the I/O priority of", here)?;
    let nice = rustix::process::setpriority_process(None, LEAST_NICE);
    on(nice, "lower the priority of", here)
}
