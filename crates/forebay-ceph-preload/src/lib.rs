//! Preload library for the clients of CephFS: a thread that waits for a capability looks at it again after 20 ms.
//!
//! Ceph's client does not wake a thread that waits until a capability is given back (`Client::get_caps`). A
//! node has dirty data of a file in its cache and goes on writing while another node begins to write the file:
//! without another message of the metadata server, that write never returns. Seen with 16.2.15; the same fault
//! for reads is <https://tracker.ceph.com/issues/65971>.
//!
//! `Client::get_caps` checks what it waits for in a loop, so that its wait may return without a wake-up. Others do not:
//! `Client::_fsync` would return before the metadata server has its data. So only waits that `get_caps` began
//! return early, and the others are those of libc.
//!
//! libcephfs does not name `Client::get_caps`. The client that uses it says instead when a thread is in a call whose
//! waits all check what they wait for: [`forebay_ceph_look_again`].

use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::{OnceLock, RwLock};

/// How long a thread waits before it looks again, in nanoseconds: the most that a missing wake-up costs.
const LOOK_AGAIN_NS: i64 = 20_000_000;
const SECOND_NS: i64 = 1_000_000_000;
/// The size of a thread's name in Linux.
const NAME_BYTES: usize = 16;
/// `Client::get_caps`, with any arguments.
const GET_CAPS: &[u8] = b"_ZN6Client8get_capsE";
/// Two of this library at most, that of the C++ library, `Client::wait_on_list`, `Client::get_caps`.
const FRAMES: usize = 5;

type Wait = unsafe extern "C" fn(*mut libc::pthread_cond_t, *mut libc::pthread_mutex_t) -> c_int;

thread_local! {
    static SERVES_REQUESTS: Cell<Option<bool>> = const { Cell::new(None) };
    static LOOKS_AGAIN: Cell<bool> = const { Cell::new(false) };
    static WAITS: Cell<u64> = const { Cell::new(0) };
}

/// From now on, or no longer, all waits of this thread return after a while.
#[unsafe(no_mangle)]
pub extern "C" fn forebay_ceph_look_again(looks_again: bool) {
    LOOKS_AGAIN.set(looks_again);
}

/// How often this thread has waited for a condition. A read from the cache of libcephfs does not wait.
#[unsafe(no_mangle)]
pub extern "C" fn forebay_ceph_waits() -> u64 {
    WAITS.get()
}

/// Waits for a condition, as the function of libc does; for a capability, at most for a while.
///
/// # Safety
/// As with the function of libc: both are initialised, and the caller holds the mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_wait(
    condition: *mut libc::pthread_cond_t,
    mutex: *mut libc::pthread_mutex_t,
) -> c_int {
    WAITS.set(WAITS.get() + 1);
    // After a wait that ended early the caller has to look: a wake-up in between is not repeated. So the choice is
    // made before it.
    let may_end = LOOKS_AGAIN.get() || (serves_requests() && awaits_capability());
    if !may_end {
        // SAFETY: the caller's promises are those of this function.
        return unsafe { wait_of_libc()(condition, mutex) };
    }
    let end = after(LOOK_AGAIN_NS);
    // SAFETY: as above.
    match unsafe { libc::pthread_cond_timedwait(condition, mutex, &raw const end) } {
        libc::ETIMEDOUT => 0,
        result => result,
    }
}

fn wait_of_libc() -> Wait {
    static FOUND: OnceLock<Wait> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let (name, version) = (c"pthread_cond_wait", c"GLIBC_2.3.2"); // there is an older one
        // SAFETY: the names end with a zero.
        let found = unsafe { libc::dlvsym(libc::RTLD_NEXT, name.as_ptr(), version.as_ptr()) };
        assert!(!found.is_null(), "libc has pthread_cond_wait");
        // SAFETY: libc's function has this type.
        unsafe { std::mem::transmute::<*mut c_void, Wait>(found) }
    })
}

/// Whether `Client::get_caps` waits.
fn awaits_capability() -> bool {
    let mut frames = [std::ptr::null_mut(); FRAMES];
    // SAFETY: room for as many frames.
    let count = unsafe { libc::backtrace(frames.as_mut_ptr(), FRAMES as c_int) };
    frames.iter().take(usize::try_from(count).unwrap_or(0)).any(|frame| is_in_get_caps(*frame))
}

/// Whether code at this address is that of `Client::get_caps`. The few addresses that occur are remembered.
fn is_in_get_caps(address: *mut c_void) -> bool {
    static KNOWN: RwLock<Vec<(usize, bool)>> = RwLock::new(Vec::new());
    let find = |all: &[(usize, bool)]| {
        all.iter().find(|(known, _)| *known == address as usize).map(|(_, is)| *is)
    };
    let known = KNOWN.read().ok().and_then(|all| find(&all));
    known.unwrap_or_else(|| {
        let is = symbol_at(address).is_some_and(|name| name.to_bytes().starts_with(GET_CAPS));
        if let Ok(mut all) = KNOWN.write() {
            all.push((address as usize, is));
        }
        is
    })
}

fn symbol_at(address: *mut c_void) -> Option<&'static CStr> {
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the structure is ours; zeros are valid in it.
    let found = unsafe {
        libc::dladdr(address, found.as_mut_ptr());
        found.assume_init()
    };
    // SAFETY: names lie in the loaded program, which stays.
    (!found.dli_sname.is_null()).then(|| unsafe { CStr::from_ptr(found.dli_sname) })
}

/// Whether this thread still has the name of the program, which threads inherit. Others have their own.
fn serves_requests() -> bool {
    static PROGRAM: OnceLock<[u8; NAME_BYTES]> = OnceLock::new();
    let known = SERVES_REQUESTS.get();
    known.unwrap_or_else(|| {
        let program = PROGRAM.get_or_init(name_of_program);
        let serves = name_of_thread() == *program;
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

/// The time after so many nanoseconds, less than a second.
fn after(nanoseconds: i64) -> libc::timespec {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists, and the structure is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut time) };
    time.tv_nsec += nanoseconds;
    if time.tv_nsec >= SECOND_NS {
        time.tv_sec += 1;
        time.tv_nsec -= SECOND_NS;
    }
    time
}
