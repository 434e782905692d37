//! The result of one staging: the data for messages and `--json`.
//! Files and bytes are those of one run; missing ones are those of the whole journal.

use forebay_mover::{CopySummary, Failure, IncompleteFile, Journal, NodeShare, Number, Shortage};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

/// The result of one staging.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct StagingSummary {
    /// Completed files and links.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The skipped ones among these files, which matched their source.
    pub unchanged_files: u64,
    /// Bytes that were copied, without holes and skipped files.
    pub copied_bytes: u64,
    /// Pending and failed files and links.
    pub missing_files: u64,
    /// Their bytes.
    pub missing_bytes: u64,
    /// Duration in seconds.
    pub seconds: f64,
    /// What other nodes of the job copied of it; empty on one node.
    pub nodes: Vec<NodeShare>,
    /// Notes, such as attributes that could not be copied, and the number of files.
    pub notes: Vec<(String, u64)>,
    /// File systems without enough space: bytes needed and bytes free.
    pub shortages: Vec<Shortage>,
    /// Files that may be incomplete because a write of them failed; staged out nevertheless.
    pub incomplete: Vec<IncompleteFile>,
    /// The failures, with path and reason.
    #[serde(serialize_with = "pairs")]
    #[schemars(with = "Vec<(String, String)>")]
    pub failures: Vec<Failure>,
}

impl StagingSummary {
    /// The result of a staging that could not begin.
    pub fn not_started(error: forebay_mover::Error) -> Self {
        Self { failures: vec![Failure::from(error)], ..Self::default() }
    }

    /// True if a file is known to be incomplete, or was not staged under its own name.
    pub fn is_incomplete(&self) -> bool {
        self.incomplete.iter().any(|file| file.is_recorded || file.is_renamed)
    }

    /// Sums up a staging that was carried out.
    pub fn new(moved: &CopySummary, journal: &Journal, seconds: f64) -> Self {
        let notes = journal.notes().unwrap_or_default();
        let Number { files, bytes } = moved.counts.missing();
        Self {
            unchanged_files: moved.unchanged_files,
            copied_bytes: moved.copied_bytes,
            missing_files: files,
            missing_bytes: bytes,
            notes: notes.into_iter().map(|(text, count, _)| (text, count)).collect(),
            files: moved.files,
            bytes: moved.bytes,
            seconds,
            nodes: moved.nodes.clone(),
            shortages: moved.shortages.clone(),
            incomplete: moved.incomplete.clone(),
            failures: moved.failures.clone(),
        }
    }
}

fn pairs<S: Serializer>(failures: &[Failure], serializer: S) -> Result<S::Ok, S::Error> {
    let text = |f: &Failure| (f.path.to_string_lossy().into_owned(), f.reason.clone());
    serializer.collect_seq(failures.iter().map(text))
}
