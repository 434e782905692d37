//! The staging of jobs, which `forebay stage` shows under their ids.
//! Assumes that the job is on this machine, and refuses others. Never copies: the job's own `forebay run` does.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use forebay_directive::{AccessMode, Direction};
use forebay_host::{clock, files};
use forebay_record::{Phase, RecordFile, records};
use forebay_recovery as recovery;
use forebay_recovery::JobState;
use forebay_terminal::CliError;
use serde_json::Value;

use super::arguments::CopyArguments;
use super::store::{StagingRecord, StagingRequest};

/// Time between two checks of a state.
pub const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Time between two checks while a job prepares.
const SHORT_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Finds the job with this id.
pub fn with_id(id: &str) -> Result<Option<RecordFile>, CliError> {
    let mut found = records().map_err(recovery::Error::from)?.found.into_iter();
    Ok(found.find(|job| job.record.id == id))
}

/// The path of a job's file as this process reaches it. `path`: below its striped namespace, or as the job named it.
pub fn path_in(id: &str, path: &Path) -> Result<PathBuf, CliError> {
    let none = |message: String| {
        let hint = "forebay status lists jobs that have left something";
        CliError::new(message).with_hint(hint)
    };
    let job = with_id(id)?.ok_or_else(|| none(format!("there is no job {id}")))?;
    if recovery::state(&job)? == JobState::OtherHost {
        let message = format!("job {id} is on {}", job.record.runner.host);
        return Err(CliError::new(message).with_hint("ask there"));
    }
    let place = job.record.place.as_ref();
    let place = place.ok_or_else(|| none(format!("job {id} has no allocation")))?;
    let below = path.strip_prefix(&place.root).unwrap_or(path);
    if below.is_absolute() || below.components().any(|part| part == Component::ParentDir) {
        let message = format!("{} is not in the allocation of job {id}", files::printable(path));
        let hint = "name a file below its striped namespace, such as results/a";
        return Err(CliError::new(message).with_hint(hint));
    }
    let modes = [AccessMode::Striped, AccessMode::Private].map(AccessMode::directory);
    let root = job.record.path_from_outside(&place.root);
    Ok(match modes.iter().any(|mode| below.starts_with(mode)) {
        true => root.join(below),
        false => root.join(modes[0]).join(below),
    })
}

/// The current or last staging of the job.
pub fn staging(job: &RecordFile) -> Result<StagingRecord, CliError> {
    let id = &job.record.id;
    if recovery::state(job)? == JobState::OtherHost {
        let message = format!("the staging of job {id} is on {}", job.record.runner.host);
        return Err(CliError::new(message).with_hint("ask there"));
    }
    let Some((direction, journal)) = job.staging().map_err(recovery::Error::from)? else {
        let message = format!("job {id} stages nothing now, and has left nothing half staged");
        let hint = "forebay status tells how far it is; forebay stage wait waits for its end";
        return Err(CliError::new(message).with_hint(hint));
    };
    let stages = job.record.stage_out.iter();
    let destinations: Vec<_> = stages.map(|one| one.pfs_path.as_str()).collect();
    let data = job.data().map_or_else(String::new, |path| path.display().to_string());
    let script = job.record.script.clone();
    let (source, target) = match direction {
        Direction::In => (script, data),
        Direction::Out => (data, destinations.join(", ")),
    };
    let request = StagingRequest {
        is_out: direction == Direction::Out,
        source,
        target,
        how: CopyArguments::default(), // its forebay run alone knows, and carries it out
        began_unix_ms: job.record.began_unix_ms,
    };
    Ok(StagingRecord { id: id.clone(), journal, request, began: clock::now() })
}

/// How a job ended.
pub enum End {
    /// Its stage-out is completed.
    Arrived,
    /// Its stage-out is pending or failed.
    Left,
    /// Its script did not start, so there is nothing to stage out.
    NotBegun,
}

/// Waits until its `forebay run` has ended.
pub fn wait_for_end(mut job: RecordFile) -> Result<End, CliError> {
    loop {
        match recovery::state(&job)? {
            // A short interval, so that the start of the script is seen before the record is removed.
            JobState::Running if job.record.phase == Phase::Preparing => {
                clock::sleep(SHORT_POLL_INTERVAL)
            }
            JobState::Running => clock::sleep(POLL_INTERVAL),
            _ if job.record.phase == Phase::Kept && !job.needs_stage_out() => {
                return Ok(End::Arrived);
            }
            _ => return Ok(End::Left),
        }
        let Some(now) = with_id(&job.record.id)? else {
            let is_begun = record_says_started(&job);
            return Ok(match is_begun.unwrap_or(job.record.phase != Phase::Preparing) {
                true => End::Arrived,
                false => End::NotBegun,
            });
        };
        job = now;
    }
}

/// True if the I/O profile of an ended job has an outcome; none if there is no such profile.
fn record_says_started(job: &RecordFile) -> Option<bool> {
    let path = job.record.profile.as_ref()?.join("job.json");
    let told: Value = serde_json::from_str(&files::read_record(&path, None).ok()?).ok()?;
    let is_told = told["outcome"].is_object() || told["error"].is_string();
    is_told.then(|| told["outcome"].is_object())
}
