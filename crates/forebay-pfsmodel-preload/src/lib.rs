//! Preload library of the emulated parallel file system: real programs, the time of a small Lustre.
//!
//! Loaded with `LD_PRELOAD`, it charges each read, write and metadata call on an emulated directory to the
//! model in `forebay-pfsmodel`, sleeps until the model says the call is done, and passes it on. Data always
//! go to and come from the real file; only time is added. Without `FOREBAY_PFS_STATE` in the environment it
//! passes everything on.
//!
//! Each hook ends in one of three ways: charged and passed on; passed on uncharged, because the descriptor or
//! path is foreign or the state is off; or passed on and counted as *unmodelled* (stdio, mmap). No hook fails
//! on its own. If the state cannot be used, the process ends with status 125 at start: a run that silently
//! was not emulated would give false numbers.
//!
//! There is no re-entrancy guard because there is nothing to guard: the logic issues system calls directly
//! (`forebay_pfsmodel::kernel`) and never enters a hook. A guard in thread-local storage would be worse than
//! none: a signal handler that leaves a sleep by `siglongjmp` (bash does) would leave it set, and the thread
//! would silently not be emulated any more.
//!
//! Variadic C functions (`open`, `fcntl`) are defined with their optional argument always present. On the
//! supported systems (x86-64, aarch64 and others whose C calling convention passes variable arguments like
//! named ones) an absent one is read as an arbitrary register and passed on unused.

mod binding;
mod delay;
mod descriptors;
mod errno;
mod hooks;
mod names;
mod next;
mod session;
