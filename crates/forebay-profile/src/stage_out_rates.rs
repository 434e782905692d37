//! Reads the rates of earlier stage-outs.

use std::path::Path;

use forebay_host::{files, state};
use serde::Deserialize;

use crate::ids::{PROFILES, ids};
use crate::job_file;

/// The maximum number of records to read.
const SAMPLES_MAX: usize = 20;

#[derive(Deserialize)]
struct Record {
    emulated: Option<serde::de::IgnoredAny>,
    outcome: Option<Outcome>,
}

#[derive(Deserialize)]
struct Outcome {
    stage_out: Option<Moved>,
}

#[derive(Deserialize)]
struct Moved {
    copied_bytes: u64,
    seconds: f64,
    /// The other nodes that copied.
    #[serde(default)]
    nodes: Vec<serde::de::IgnoredAny>,
}

/// Bytes and seconds of recent stage-outs, newest first. Skips those on an emulated file system, and those in which
/// more nodes copied than `nodes`: they were faster than this many can be.
pub fn recent_stage_outs(nodes: usize) -> impl Iterator<Item = (u64, f64)> {
    let all = state::directories().into_iter().flat_map(move |directory| {
        let profiles = directory.join(PROFILES);
        let newest = ids(&profiles).into_iter().rev().take(SAMPLES_MAX);
        newest.filter_map(move |id| stage_out(&profiles.join(id.to_string()), nodes))
    });
    all.take(SAMPLES_MAX)
}

fn stage_out(directory: &Path, nodes: usize) -> Option<(u64, f64)> {
    let text = files::read_record(&directory.join(job_file::NAME), None).ok()?;
    let record: Record = serde_json::from_str(&text).ok()?;
    if record.emulated.is_some() {
        return None;
    }
    let moved = record.outcome?.stage_out?;
    (moved.nodes.len() < nodes).then_some((moved.copied_bytes, moved.seconds))
}
