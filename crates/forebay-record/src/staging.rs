//! The staging options and drains in a job's record. Another process continues the staging with
//! them.

use std::path::PathBuf;

use forebay_mover::Verify;
use serde::{Deserialize, Serialize};

/// The user's options for a job's own staging.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagingOptions {
    /// When checksums are computed.
    pub verify: Verify,
    /// The highest write rate; none: unlimited.
    pub bytes_per_s_max: Option<u64>,
    /// Stage out files with a failed write as if they were whole.
    #[serde(default)]
    pub accept_failed_writes: bool,
}

impl Default for StagingOptions {
    fn default() -> Self {
        Self { verify: Verify::Copy, bytes_per_s_max: None, accept_failed_writes: false }
    }
}

impl StagingOptions {
    /// When checksums are computed if the journal ends with its process and cannot keep them.
    pub fn verify_without_journal(self) -> Verify {
        match self.verify {
            Verify::End => Verify::End,
            Verify::Copy | Verify::Off => Verify::Off,
        }
    }
}

/// A drain to a directory that no stage_out line names. The job's record contains it, so that it
/// continues after a kill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainTarget {
    /// The source, a directory in the allocation.
    pub directory: PathBuf,
    /// Patterns of the files to copy; all files if empty.
    pub patterns: Vec<String>,
    /// Copy only the file modified last.
    pub newest: bool,
    /// The destination; files keep their paths below the source.
    pub to: PathBuf,
}
