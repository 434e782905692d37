//! Records who sent a signal: the terminal (to a whole process group) or a process.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bit N-1 is set if the last signal N came from the kernel.
static FROM_THE_KERNEL: AtomicU64 = AtomicU64::new(0);

/// Records the sender of these signals from now on. Later handlers run after this record.
pub(super) fn note(signals: &[i32]) -> std::io::Result<()> {
    for &signal in signals {
        let bit = 1 << (signal - 1);
        // SAFETY: the handler only changes an atomic number, which is async-signal-safe.
        unsafe {
            signal_hook_registry::register_sigaction(signal, move |info| {
                if info.si_code == libc::SI_KERNEL {
                    FROM_THE_KERNEL.fetch_or(bit, Ordering::SeqCst);
                } else {
                    FROM_THE_KERNEL.fetch_and(!bit, Ordering::SeqCst);
                }
            })?;
        }
    }
    Ok(())
}

/// Whether the last such signal came from the kernel, as those of a terminal do.
pub(super) fn is_the_kernel(signal: i32) -> bool {
    FROM_THE_KERNEL.load(Ordering::SeqCst) & (1 << (signal - 1)) != 0
}
