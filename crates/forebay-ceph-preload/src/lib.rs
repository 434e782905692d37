//! Preload library for `ceph-fuse`: a thread that waits for a condition looks at it again after 20 ms.
//!
//! Ceph's client does not wake a thread that waits until a capability is given back (`Client::get_caps`). A
//! node has dirty data of a file in its cache and goes on writing while another node begins to write the file:
//! without another message of the metadata server, that write never returns. Seen with 16.2.15; the same fault
//! for reads is <https://tracker.ceph.com/issues/65971>. POSIX allows `pthread_cond_wait` to return without a
//! reason, and those who call it check what they wait for.
//!
//! Only the threads that serve requests look again: they have the name of the program, the others their own. The
//! first thread mounts, and does not look again: a wait of it (`Client::fetch_fsmap`) takes each return for the answer,
//! and ends the program if the answer is not there.

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::OnceLock;

/// How long a thread waits before it looks again, in nanoseconds: the most that a missing wake-up costs.
const LOOK_AGAIN_NS: i64 = 20_000_000;
/// The same for threads that do not serve requests, in seconds.
const OTHERS_LOOK_AGAIN_S: libc::time_t = 3600;
const SECOND_NS: i64 = 1_000_000_000;
/// The size of a thread's name in Linux.
const NAME_BYTES: usize = 16;

thread_local! {
    static SERVES_REQUESTS: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Waits for a condition, as the function of libc does, at most for a while.
///
/// # Safety
/// As with the function of libc: both are initialised, and the caller holds the mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_wait(
    condition: *mut libc::pthread_cond_t,
    mutex: *mut libc::pthread_mutex_t,
) -> c_int {
    let end =
        if serves_requests() { after(0, LOOK_AGAIN_NS) } else { after(OTHERS_LOOK_AGAIN_S, 0) };
    // SAFETY: the caller's promises are those of this function.
    match unsafe { libc::pthread_cond_timedwait(condition, mutex, &raw const end) } {
        libc::ETIMEDOUT => 0,
        result => result,
    }
}

/// Whether this thread is not the first, and still has the name of the program, which threads inherit.
fn serves_requests() -> bool {
    static PROGRAM: OnceLock<[u8; NAME_BYTES]> = OnceLock::new();
    let known = SERVES_REQUESTS.get();
    known.unwrap_or_else(|| {
        let program = PROGRAM.get_or_init(name_of_program);
        // SAFETY: these have no arguments.
        let is_first = unsafe { libc::gettid() == libc::getpid() };
        let serves = !is_first && name_of_thread() == *program;
        SERVES_REQUESTS.set(Some(serves));
        serves
    })
}

fn name_of_thread() -> [u8; NAME_BYTES] {
    let mut name = [0; NAME_BYTES];
    // SAFETY: the kernel writes at most 16 bytes, the last of them zero.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    name
}

// It stands alone in a foreign program.
#[allow(clippy::disallowed_methods)]
fn name_of_program() -> [u8; NAME_BYTES] {
    let mut name = [0; NAME_BYTES];
    let text = std::fs::read("/proc/self/comm").unwrap_or_default();
    let text = text.strip_suffix(b"\n").unwrap_or(&text);
    let length = text.len().min(NAME_BYTES - 1);
    name[..length].copy_from_slice(&text[..length]);
    name
}

/// The time after so many seconds and nanoseconds.
fn after(seconds: libc::time_t, nanoseconds: i64) -> libc::timespec {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists, and the structure is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut time) };
    time.tv_sec += seconds;
    time.tv_nsec += nanoseconds;
    if time.tv_nsec >= SECOND_NS {
        time.tv_sec += 1;
        time.tv_nsec -= SECOND_NS;
    }
    time
}
