//! The emulated parallel file system (docs/explanation/emulation.md): computes the end of operations on a small Lustre.
//! Processes share its mapped [`State`]. Assumes 64-bit Linux, one host. Never locks (a process may be killed
//! anywhere), calls libc functions that a preload may replace (`kernel.rs`), or allocates while charging.

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

pub use administration::{LayoutError, PathStriping};
pub use charge::{Client, Op};
pub use counters::{Counters, TargetCounters};
pub use layout::{Layout, TargetBytes};
pub use machine::{ClientLimits, DefaultLayout, Metadata, Model, ModelError, Targets};
pub use quantity::Quantity;
pub use state::{State, StateError};
pub use striping::Striping;

/// The environment variable with the path of the shared state file. Unset: no emulation.
pub const STATE_ENV: &str = "FOREBAY_PFS_STATE";
