//! Preload library of the emulated parallel file system: charges each call on an emulated directory to the model, sleeps
//! until it is done, and passes it on. Never changes data or fails a call: a hook charges, bypasses what is foreign, or
//! counts what is unmodelled; a state that cannot be used ends the process with status 125 at start.
//
// No re-entrancy guard: the logic issues system calls directly (`forebay_pfsmodel::kernel`). A guard in thread-local
// storage would stay set when a signal handler leaves a sleep by `siglongjmp`, as bash does.
// Variadic functions (`open`, `fcntl`) are defined with their optional argument always present: the C calling
// conventions of x86-64 and aarch64 read an absent one as an arbitrary register, which is passed on unused.

mod binding;
mod delay;
mod descriptors;
mod errno;
mod hooks;
mod names;
mod next;
mod session;
