//! The emulated parallel file system: how long a small Lustre would take.
//!
//! A page cache is no parallel file system. This library computes, from a machine file, when each read,
//! write and metadata operation would have finished on striped targets, a metadata server and capped
//! clients; `forebay-pfsmodel-preload` sleeps until then inside real programs. All processes of one
//! emulation share one [`State`] in a memory-mapped file.
//!
//! The formulas, the machine file and what is *not* modelled are in `docs/pfs-model.md`.
//!
//! What this crate assumes: Linux, 64 bit, one host (one `CLOCK_MONOTONIC`). What it never does: take a
//! lock (a process killed anywhere must not block another), call a libc function that a preload may have
//! replaced (`kernel.rs` issues system calls directly), or allocate while charging.

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!(
    "forebay-pfsmodel needs 64-bit Linux: the shared state holds 64-bit atomics and /proc is read"
);

mod administration;
mod block;
mod charge;
mod counters;
pub mod kernel;
mod layout;
mod machine;
pub mod paths;
mod quantity;
mod state;
pub mod striping;

pub use administration::{LayoutError, Shown};
pub use block::{ROOTS_MAX, TARGETS_MAX};
pub use charge::{Client, Op};
pub use counters::{Counters, TargetCounters};
pub use layout::{Lane, Layout};
pub use machine::{ClientLimits, DefaultLayout, Metadata, Model, ModelError, Targets};
pub use quantity::Quantity;
pub use state::{State, StateError};
pub use striping::{LAYOUT_XATTR, Striping};

/// Environment variable that names the shared state file; the preload attaches to it. Unset: no emulation.
pub const STATE_ENV: &str = "FOREBAY_PFS_STATE";
