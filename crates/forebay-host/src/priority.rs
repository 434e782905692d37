//! How much a thread gets where others want the same.

use std::path::Path;

use rustix::thread::{Pid, gettid};

use crate::{Result, on};

/// Of linux/ioprio.h: the class whose requests are served when there are no others, at its place in the
/// number; and the calling thread.
const IDLE: libc::c_int = 3 << 13;
const WHO_PROCESS: libc::c_int = 1;
const NO_CLASS: libc::c_int = 0;
/// A tenth of the weight of the others. The least, 19, is a seventieth: where all processors are busy, as an
/// application keeps them, so little is copied that stage-out begins with everything.
const NICE: i32 = 10;

/// A thread that yields to all others.
#[derive(Debug, Clone, Copy)]
pub struct Yielding(Pid);

/// From here on this thread, and those that it starts, leaves the disk, and most of a processor, to all others. A disk whose
/// scheduler knows no classes serves it as any other.
///
/// # Errors
/// If the kernel refuses.
pub fn yield_to_others() -> Result<Yielding> {
    leave_disk_to_others()?;
    let here = Path::new("this thread");
    let nice = rustix::process::setpriority_process(None, NICE);
    on(nice, "lower the priority of", here).map(|()| Yielding(gettid()))
}

/// From here on this thread, and those that it starts, leaves the disk to all others, but not the processor.
///
/// # Errors
/// If the kernel refuses.
pub fn leave_disk_to_others() -> Result<()> {
    let set = set_class(0, IDLE);
    on(set, "lower the I/O priority of", Path::new("this thread"))
}

impl Yielding {
    /// From here on the disk serves the thread as any other. The processor does not: that nobody may ask for.
    ///
    /// # Errors
    /// If the kernel refuses, or the thread has ended.
    pub fn no_longer(self) -> Result<()> {
        let set = set_class(self.0.as_raw_pid(), NO_CLASS);
        on(set, "raise the I/O priority of", Path::new("a thread"))
    }
}

/// 0 is the calling thread.
fn set_class(thread: i32, class: libc::c_int) -> std::io::Result<()> {
    // SAFETY: the call takes three numbers and no memory.
    match unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, thread, class) } {
        -1 => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    }
}
