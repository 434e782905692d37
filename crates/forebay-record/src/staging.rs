//! What a job's record says about its staging: how it copies, and what goes where no stage_out line says.
//! It is also what another process needs to continue it.

use std::path::PathBuf;

use forebay_mover::Verify;
use serde::{Deserialize, Serialize};

/// What the user wants of a job's own staging.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagingOptions {
    /// When checksums are taken.
    pub verify: Verify,
    /// No more than this is written; none: as fast as it goes.
    pub bytes_per_s_max: Option<u64>,
}

impl Default for StagingOptions {
    fn default() -> Self {
        Self { verify: Verify::Copy, bytes_per_s_max: None }
    }
}

impl StagingOptions {
    /// When checksums are taken where the journal goes with its process, so that they have nowhere to be kept.
    pub fn verify_without_journal(self) -> Verify {
        match self.verify {
            Verify::End => Verify::End,
            Verify::Copy | Verify::Off => Verify::Off,
        }
    }
}

/// Files that go to a directory that no stage_out line names; also written down in the job's record, so
/// that they are not forgotten when the job is killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainTarget {
    /// A directory in the allocation.
    pub directory: PathBuf,
    /// Which of its files; all if there is none.
    pub patterns: Vec<String>,
    /// Only the one that was modified last.
    pub newest: bool,
    /// Where they go, with their paths below the directory.
    pub to: PathBuf,
}
