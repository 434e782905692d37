//! How much a thread gets where others want the same.

use std::path::Path;

use crate::{Result, on};

/// Of linux/ioprio.h: the class whose requests are served when there are no others, at its place in the
/// number; and the calling thread.
const IDLE: libc::c_int = 3 << 13;
const WHO_PROCESS: libc::c_int = 1;
const THIS_THREAD: libc::c_int = 0;
const NO_CLASS: libc::c_int = 0;
/// A tenth of the weight of the others. The least, 19, is a seventieth: where all processors are busy, as an
/// application keeps them, so little is copied that stage-out begins with everything.
const NICE: i32 = 10;

/// From here on this thread, and those that it starts, leaves the disk, and most of a processor, to all others. A disk whose
/// scheduler knows no classes serves it as any other.
pub fn lower_priority() -> Result<()> {
    set_idle_io_class()?;
    let here = Path::new("this thread");
    let nice = rustix::process::setpriority_process(None, NICE);
    on(nice, "lower the priority of", here)
}

/// From here on this thread, and those that it starts, leaves the disk to all others, but not the processor.
pub fn set_idle_io_class() -> Result<()> {
    let set = set_class(IDLE);
    on(set, "lower the I/O priority of", Path::new("this thread"))
}

/// From here on the disk serves this thread as any other. The processor does not: that nobody may ask for.
pub fn set_default_io_class() -> Result<()> {
    let set = set_class(NO_CLASS);
    on(set, "raise the I/O priority of", Path::new("this thread"))
}

/// Of the calling thread.
fn set_class(class: libc::c_int) -> std::io::Result<()> {
    // SAFETY: the call takes three numbers and no memory.
    match unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, THIS_THREAD, class) } {
        -1 => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    }
}
