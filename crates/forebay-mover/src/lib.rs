//! Staging: what is to be copied and how far it is ([`Journal`]), and copying it ([`carry_out`]).
//!
//! Each file is a small state machine in the journal. Whatever ends the process, the next one goes on
//! where it was: every step can be done twice. A file appears under its name only when it is whole: it is
//! written beside its place under a temporary name, given its attributes, synced if asked, and renamed; new
//! directories of few small files are, as a whole.
//! What stood there before is replaced in that one step. A file that fails does not stop the others; it is
//! listed.

mod attributes;
mod bandwidth_limit;
mod batch;
mod content;
mod counts;
mod directories;
mod engine;
mod error;
mod hand;
mod hard_links;
mod item;
mod journal;
mod large;
mod leaves;
mod left_out;
mod looking;
mod missing;
mod options;
mod pace;
mod parts;
mod places;
mod planning;
mod shortage;
mod steps;
mod striping;

pub use bandwidth_limit::BandwidthLimit;
pub use counts::{Counts, Number};
pub use engine::{Did, Moved, carry_out};
pub use error::Error;
pub use hand::Running;
pub use journal::{Account, Journal, State};
pub use missing::Missing;
pub use options::{Options, PIECE_BYTES, Placing, Verify};
pub use pace::Pace;
pub use parts::remove_parts_in;
pub use planning::Planned;
pub use shortage::Shortage;

use std::path::PathBuf;

/// What the user says the source is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// One file. A target that is a directory receives it under its own name.
    File,
    /// One file, under the target's name, also if a directory stands there: then it cannot arrive.
    FileAs,
    /// The contents of a directory, which become the contents of the target.
    Directory,
}

/// One source to be moved to one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// File or directory.
    pub what: What,
    /// From where. A link named here is followed.
    pub source: PathBuf,
    /// To where. A trailing slash says that it is a directory.
    pub target: PathBuf,
}

/// One thing that could not be moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The source, or the target where that was at fault.
    pub path: PathBuf,
    /// Why.
    pub reason: String,
    /// What to do about it, where that can be said.
    pub remedy: Option<String>,
    /// The number of the error, as in errno(3), where there is one for it.
    pub errno: Option<i32>,
}

impl Failure {
    /// A failure that speaks for itself.
    #[must_use]
    pub fn new(path: PathBuf, reason: String) -> Self {
        Self {
            path,
            reason,
            remedy: None,
            errno: None,
        }
    }
}
