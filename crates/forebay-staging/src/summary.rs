//! What became of one staging: the data behind messages and `--json`.

use std::path::PathBuf;

use forebay_mover::{Failure, Moved, Number, Shortage};
use serde::{Serialize, Serializer};

/// One staging.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Staged {
    /// Files and links that arrived.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those of the files that were there already, as they should be.
    pub unchanged_files: u64,
    /// Bytes that were copied: neither holes nor what was there already.
    pub copied_bytes: u64,
    /// Files and links that have not arrived.
    pub missing_files: u64,
    /// Their bytes.
    pub missing_bytes: u64,
    /// How long it took.
    pub seconds: f64,
    /// What arrived without all of its attributes: what is missing, and how often.
    pub notes: Vec<(String, u64)>,
    /// File systems that had no room: what is needed there and what is free.
    pub shortages: Vec<Shortage>,
    /// What did not arrive: path and reason.
    #[serde(serialize_with = "pairs")]
    pub failures: Vec<Failure>,
}

impl Staged {
    /// None of it could begin.
    pub fn not_started(error: forebay_mover::Error) -> Self {
        Self { failures: vec![Failure::from(error)], ..Self::default() }
    }

    /// What became of it.
    pub fn new(moved: &Moved, notes: Vec<(String, u64, PathBuf)>, seconds: f64) -> Self {
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
            shortages: moved.shortages.clone(),
            failures: moved.failures.clone(),
        }
    }
}

fn pairs<S: Serializer>(failures: &[Failure], serializer: S) -> Result<S::Ok, S::Error> {
    let text = |f: &Failure| (f.path.to_string_lossy().into_owned(), f.reason.clone());
    serializer.collect_seq(failures.iter().map(text))
}
