//! This process as a client of the emulated file system: the state it is attached to, its number, its sleep.

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

/// Exit status of a process whose state cannot be used (the status `env` and `timeout` use for their own
/// failures).
const EXIT_UNUSABLE: c_int = 125;

/// What is made good at most; a machine that stalls for longer is not fit for measurements, and shows it.
const BEHIND_NS_MAX: u64 = 50_000_000;

thread_local! {
    /// When this thread's last call was done in model time. Constant and without destructor, so that no
    /// access allocates.
    static DUE_NS: Cell<u64> = const { Cell::new(0) };
    /// How far this thread's clock is behind model time, because it woke late and the real call took time.
    static BEHIND_NS: Cell<u64> = const { Cell::new(0) };
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

/// The state, or `None` if emulation is off (or is just being switched on further up in this call chain).
pub(crate) fn state() -> Option<&'static State> {
    match MODE.load(Ordering::Acquire) {
        // SAFETY: ON is stored after the pointer; the state is never freed.
        ON => unsafe { STATE.load(Ordering::Relaxed).as_ref() },
        NOT_ASKED => attach(),
        _ => None,
    }
}

/// True once it is certain that this process is not emulated.
pub(crate) fn is_off() -> bool {
    MODE.load(Ordering::Relaxed) == OFF
}

/// This process as the model's client.
pub(crate) fn client() -> &'static Client {
    &CLIENT
}

/// False in a child made by vfork, which runs in its parent's memory and must not fill the parent's tables.
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
        end(format_args!("/proc is not mounted, so it cannot tell which files are emulated"));
    }
    state.note_attached();
    adopt_process();
    // SAFETY: registers a function of this library, which is never unloaded (preloads are not).
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    STATE.store(state, Ordering::Relaxed);
    MODE.store(ON, Ordering::Release);
    Some(state)
}

/// The variable's value; `None` also for set-user-id programs, which must not map a file that their caller names.
fn state_path() -> Option<&'static Path> {
    // SAFETY: reads the auxiliary vector.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return None;
    }
    let mut name = [0u8; STATE_ENV.len() + 1];
    name[..STATE_ENV.len()].copy_from_slice(STATE_ENV.as_bytes());
    // SAFETY: the name is zero-terminated. We run before the program, so nobody changes the environment.
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
    end(format_args!("{error}"))
}

/// Says why and ends the process. Going on without emulation would produce false numbers.
fn end(reason: std::fmt::Arguments<'_>) -> ! {
    let message = format!(
        "forebay: the emulated file system ({STATE_ENV}) cannot be used: {reason}\n\
         hint: unset {STATE_ENV} to run without emulation\n"
    );
    kernel::complain(&message);
    // SAFETY: ends the process at once; no handler of the program may run in a half-started process.
    unsafe { libc::_exit(EXIT_UNUSABLE) }
}

/// The time a call begins, for the model: now, less what this thread is behind. Waking up late (timer slack, an
/// idle processor) and the real call are no properties of the emulated file system; without this a 500 us
/// request took 580 us.
pub(crate) fn now_ns() -> u64 {
    let behind_ns = BEHIND_NS.take();
    kernel::now_ns().saturating_sub(behind_ns.min(BEHIND_NS_MAX))
}

/// Sleeps until the model says that a call that began at `now_ns` is done.
pub(crate) fn sleep(state: &State, now_ns: u64, finish_ns: u64) {
    if finish_ns > now_ns {
        state.note_sleep(finish_ns - now_ns);
        DUE_NS.set(finish_ns);
        kernel::sleep_until(finish_ns);
        note_behind();
    }
}

/// Notes how late it is since the last sleep of this thread was due; after the real call this includes it.
pub(crate) fn note_behind() {
    BEHIND_NS.set(kernel::now_ns().saturating_sub(DUE_NS.get()));
}
