//! This process as a client of the emulated file system: its state, its number and its sleep.
//! Ends the process with status 125 at start if the state is unusable. Never reads the variable in set-user-ID
//! programs.

use std::cell::Cell;
use std::ffi::{CStr, OsStr, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering};

use forebay_pfsmodel::{Client, STATE_ENV, State, StateError, kernel};

const NOT_ASKED: u8 = 0;
const ASKING: u8 = 1;
const OFF: u8 = 2;
const ON: u8 = 3;

/// Exit status if the state is unusable (`env` and `timeout` use the same status for their
/// failures).
const EXIT_UNUSABLE: c_int = 125;

/// The maximum delay to subtract. A longer stall of the machine stays visible in the measurements.
const OVERSLEPT_NS_MAX: u64 = 50_000_000;

thread_local! {
    /// End of this thread's last call in model time. Constant and without destructor, so that an
    /// access never allocates.
    static DUE_NS: Cell<u64> = const { Cell::new(0) };
    /// Delay of this thread against model time, caused by late wake-ups and the real call.
    static OVERSLEPT_NS: Cell<u64> = const { Cell::new(0) };
}

static MODE: AtomicU8 = AtomicU8::new(NOT_ASKED);
static STATE: AtomicPtr<State> = AtomicPtr::new(null_mut());
static CLIENT: Client = Client::new();
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Runs when the library is loaded, before the program.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

extern "C" fn at_load() {
    crate::errno::kept(state);
}

/// The state; `None` if emulation is off or a caller in this call chain is attaching.
pub(crate) fn state() -> Option<&'static State> {
    match MODE.load(Ordering::Acquire) {
        // SAFETY: ON is stored after the pointer, and the state is never freed.
        ON => unsafe { STATE.load(Ordering::Relaxed).as_ref() },
        NOT_ASKED => attach(),
        _ => None,
    }
}

/// True once the process is known to run without emulation.
pub(crate) fn is_off() -> bool {
    MODE.load(Ordering::Relaxed) == OFF
}

/// This process as the model's client.
pub(crate) fn client() -> &'static Client {
    &CLIENT
}

/// False in a vfork child: it runs in its parent's memory and must not change the parent's tables.
pub(crate) fn owns_memory() -> bool {
    kernel::process() == PROCESS.load(Ordering::Relaxed)
}

#[cold]
fn attach() -> Option<&'static State> {
    MODE.compare_exchange(NOT_ASKED, ASKING, Ordering::Acquire, Ordering::Relaxed).ok()?;
    let Some(path) = state_path() else {
        MODE.store(OFF, Ordering::Release);
        return None;
    };
    let state = match State::attach(path) {
        Ok(state) => Box::leak(Box::new(state)),
        Err(error) => refuse(&error),
    };
    if kernel::read_link(c"/proc/self/exe", &mut [0]).is_err() {
        exit_unusable(format_args!(
            "/proc is not mounted, so it cannot tell which files are emulated"
        ));
    }
    state.note_attached();
    adopt_process();
    // SAFETY: registers a function of this library, which is never unloaded, as all preloads.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    STATE.store(state, Ordering::Relaxed);
    MODE.store(ON, Ordering::Release);
    Some(state)
}

/// The value of the variable. `None` for set-user-id programs: their caller must not choose the file.
fn state_path() -> Option<&'static Path> {
    // SAFETY: reads the auxiliary vector.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return None;
    }
    let mut name = [0u8; STATE_ENV.len() + 1];
    name[..STATE_ENV.len()].copy_from_slice(STATE_ENV.as_bytes());
    // SAFETY: the name is zero-terminated. This runs before the program, so nothing changes the environment.
    let value = unsafe { libc::getenv(name.as_ptr().cast()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: getenv returned a C string of the environment; it is used before the program can change it.
    let value = unsafe { CStr::from_ptr(value) }.to_bytes();
    (!value.is_empty()).then(|| Path::new(OsStr::from_bytes(value)))
}

extern "C" fn in_child() {
    CLIENT.forget();
    adopt_process();
}

fn adopt_process() {
    PROCESS.store(kernel::process(), Ordering::Relaxed);
}

fn refuse(error: &StateError) -> ! {
    exit_unusable(format_args!("{error}"))
}

/// Prints the reason and ends the process. Without emulation, the program would produce wrong numbers.
fn exit_unusable(reason: std::fmt::Arguments<'_>) -> ! {
    let message = format!(
        "forebay: the emulated file system ({STATE_ENV}) cannot be used: {reason}\n\
         hint: unset {STATE_ENV} to run without emulation\n"
    );
    kernel::complain(&message);
    // SAFETY: ends the process at once; no handler of the program may run in a half-started process.
    unsafe { libc::_exit(EXIT_UNUSABLE) }
}

/// The start time of a call for the model: now, minus this thread's delay. Late wake-ups (timer
/// slack, an idle processor) and the real call do not belong to the emulated file system. Without
/// this correction, a 500 us request took 580 us.
pub(crate) fn now_ns() -> u64 {
    let overslept_ns = OVERSLEPT_NS.take();
    kernel::now_ns().saturating_sub(overslept_ns.min(OVERSLEPT_NS_MAX))
}

/// Sleeps until the model's end of a call that began at `now_ns`.
pub(crate) fn sleep(state: &State, now_ns: u64, finish_ns: u64) {
    if finish_ns > now_ns {
        state.note_sleep(finish_ns - now_ns);
        DUE_NS.set(finish_ns);
        kernel::sleep_until(finish_ns);
        note_oversleep();
    }
}

/// Records the time since this thread's last sleep was due. After the real call, this includes the call.
pub(crate) fn note_oversleep() {
    OVERSLEPT_NS.set(kernel::now_ns().saturating_sub(DUE_NS.get()));
}
