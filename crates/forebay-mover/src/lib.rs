//! Staging: what is to be copied ([`Plan`]), and copying it ([`carry_out`]).
//!
//! A file appears under its name only when it is whole: it is written beside its place under a
//! temporary name, given mode and times, synced if asked, and renamed. What stood there before is
//! replaced in that one step. A file that fails does not stop the others; it is listed.

mod engine;
mod missing;
mod parts;
mod plan;

pub use engine::{Moved, Options, carry_out};
pub use missing::Missing;
pub use plan::{Error, Plan, Transfer, What};

use std::path::PathBuf;

/// One thing that could not be moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The source, or the target where that was at fault.
    pub path: PathBuf,
    /// Why.
    pub reason: String,
}
