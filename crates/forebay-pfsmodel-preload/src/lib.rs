//! Preload library of the emulated parallel file system: charges each emulated call to the model, sleeps
//! until its end, and passes it on. A hook charges, bypasses foreign files, or counts unmodelled ones. Never
//! changes data or fails a call. If the state is unusable, the process exits at start with status 125.
//
// There is no re-entrancy guard: the logic issues system calls directly (`forebay_pfsmodel::kernel`). A
// guard in thread-local storage would stay set when a signal handler leaves a sleep by `siglongjmp`, as bash
// does. Variadic functions (`open`, `fcntl`) are defined with their optional argument: with the C calling
// conventions of x86-64 and aarch64, an absent one reads an arbitrary register, which is passed on unused.

mod binding;
mod delay;
mod descriptors;
mod errno;
mod hooks;
mod names;
mod next;
mod session;
