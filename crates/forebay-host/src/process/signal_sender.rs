//! Who sent a signal: a terminal gives its own to a whole process group, a process to whom it names.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bit N-1 is set if signal N came from the kernel when it came last.
static FROM_THE_KERNEL: AtomicU64 = AtomicU64::new(0);

/// Notes from here on who sends these signals. What is registered later sees the note of its signal.
pub(super) fn note(signals: &[i32]) -> std::io::Result<()> {
    for &signal in signals {
        let bit = 1 << (signal - 1);
        // SAFETY: the action only changes an atomic number, which a signal handler may do.
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

/// Did this signal come from the kernel, as a terminal's does?
pub(super) fn is_the_kernel(signal: i32) -> bool {
    FROM_THE_KERNEL.load(Ordering::SeqCst) & (1 << (signal - 1)) != 0
}
