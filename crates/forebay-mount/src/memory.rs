//! Memory that the process has freed serves its next requests.

/// Bytes of freed memory that stay, at most. As much as libcephfs caches of files, and more.
#[cfg(target_env = "gnu")]
const KEPT_BYTES: libc::c_int = 256 << 20;
/// Larger blocks come from the kernel and go back to it. More is not possible.
#[cfg(target_env = "gnu")]
const BLOCK_BYTES_MAX: libc::c_int = 32 << 20;

/// Keeps what is freed, and gives it to all threads. A thread of libcephfs frees what another one took. The C library would
/// give it back to the kernel and take new pages for each megabyte that is written, or read.
pub(crate) fn keep_freed() {
    #[cfg(target_env = "gnu")]
    for (parameter, value) in [
        (libc::M_ARENA_MAX, 1),
        (libc::M_TRIM_THRESHOLD, KEPT_BYTES),
        (libc::M_MMAP_THRESHOLD, BLOCK_BYTES_MAX),
    ] {
        // SAFETY: it changes how memory is taken from now on, and nothing else.
        if unsafe { libc::mallopt(parameter, value) } == 0 {
            eprintln!(
                "the C library does not take parameter {parameter} of malloc: more time is needed for memory"
            );
        }
    }
}
