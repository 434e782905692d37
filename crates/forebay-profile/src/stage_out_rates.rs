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
}

/// Bytes and seconds of recent stage-outs, newest first. Skips those on an emulated file system.
pub fn recent_stage_outs() -> impl Iterator<Item = (u64, f64)> {
    let all = state::directories().into_iter().flat_map(|directory| {
        let profiles = directory.join(PROFILES);
        let newest = ids(&profiles).into_iter().rev().take(SAMPLES_MAX);
        newest.filter_map(move |id| stage_out(&profiles.join(id.to_string())))
    });
    all.take(SAMPLES_MAX)
}

fn stage_out(directory: &Path) -> Option<(u64, f64)> {
    let text = files::read_record(&directory.join(job_file::NAME), None).ok()?;
    let record: Record = serde_json::from_str(&text).ok()?;
    if record.emulated.is_some() {
        return None;
    }
    let moved = record.outcome?.stage_out?;
    Some((moved.copied_bytes, moved.seconds))
}
