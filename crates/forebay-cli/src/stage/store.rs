//! Stagings on disk: one journal each, in the user's state directory.
//! Assumes that a journal can vanish when its staging completes. By itself, removes only those that
//! are complete.

use std::path::{Path, PathBuf};
use std::time::Instant;

use forebay_directive::Direction;
use forebay_host::state::directories;
use forebay_host::{clock, files};
use forebay_mover::{
    Error, Failure, Journal, JournalLock, KeepChanged, Options, Shortage, State, Transfer,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::arguments::CopyArguments;

/// Directory name in a state directory.
const STAGINGS: &str = "stagings";
const END: &str = "journal";
/// Age after which a completed staging is removed, when another one ends in the background.
const DONE_S_MAX: i64 = 7 * 24 * 60 * 60;
/// A younger one is removed if this many are newer.
const NEWER_MAX: usize = 1000;

/// The request of a staging, recorded in its journal.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StagingRequest {
    pub is_out: bool,
    /// The paths as the user gave them; characters that are not UTF-8 are replaced.
    pub source: String,
    pub target: String,
    pub how: CopyArguments,
    /// 0 in journals of older versions.
    #[serde(default)]
    pub began_unix_ms: u64,
}

impl StagingRequest {
    pub fn direction(&self) -> Direction {
        if self.is_out { Direction::Out } else { Direction::In }
    }

    /// What another attempt does not replace: what others changed since the first one began.
    pub fn keep_changed(&self, newer_only: bool) -> Option<KeepChanged> {
        let after_unix_ms = Some(self.began_unix_ms).filter(|began| *began > 0);
        after_unix_ms.map(|after_unix_ms| KeepChanged { after_unix_ms, newer_only })
    }

    pub fn options(&self, id: &str, keep_changed: Option<KeepChanged>) -> Options {
        let others = Options::of(id);
        let threads = self.how.threads.map(|threads| threads as usize);
        Options {
            workers: threads.unwrap_or(others.workers),
            workers_on_large: threads.unwrap_or(others.workers_on_large),
            piece_bytes: self.how.piece,
            past_page_cache: self.is_out,
            verify: self.how.verify.into(),
            checksum: self.how.checksum,
            bytes_per_s_max: self.how.rate,
            keep_changed,
            ..others
        }
    }
}

/// A recorded staging.
pub struct StagingRecord {
    pub id: String,
    pub journal: Journal,
    pub request: StagingRequest,
    /// When this process opened it.
    pub began: Instant,
}

/// One staging in the output of `--json`.
#[derive(Serialize, JsonSchema)]
pub struct StagingStatus {
    /// Its id.
    pub id: String,
    /// `in` or `out`.
    pub direction: &'static str,
    /// The source, as the user gave it.
    pub source: String,
    /// The destination, as the user gave it.
    pub target: String,
    /// running, done, failed, cancelled or interrupted.
    pub state: &'static str,
    /// Files and links to stage.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those that are at their destinations.
    pub placed_files: u64,
    /// Their bytes.
    pub placed_bytes: u64,
    /// Includes the bytes of partial files.
    pub copied_bytes: u64,
    /// Throughput; null if the staging does not run, or it is unknown.
    pub bytes_per_s: Option<u64>,
    /// Remaining time; null as above.
    pub remaining_s: Option<u64>,
    /// Files and links that are pending or failed.
    pub missing_files: u64,
    /// Their bytes.
    pub missing_bytes: u64,
    /// Directories that do not exist yet or lack their modes and times.
    pub open_directories: u64,
    /// Number of files in each state of the journal, in the journal's order.
    pub by_state: Vec<(&'static str, u64)>,
    /// Number of failures.
    pub failed: u64,
    /// The first failures, or all of them.
    pub failures: Vec<ShownFailure>,
    /// File systems without enough space: bytes needed and bytes free.
    pub shortages: Vec<Shortage>,
    /// Notes, such as attributes that could not be copied, with the number of files and the first file.
    pub notes: Vec<(String, u64, String)>,
}

/// One failure in the output of `--json`.
#[derive(Serialize, JsonSchema)]
pub struct ShownFailure {
    /// The file.
    pub path: String,
    /// Why it failed.
    pub reason: String,
    /// What to do about it.
    pub remedy: Option<String>,
}

impl From<Failure> for ShownFailure {
    fn from(failure: Failure) -> Self {
        Self {
            path: failure.path.to_string_lossy().into_owned(),
            reason: failure.reason,
            remedy: failure.remedy,
        }
    }
}

impl StagingRecord {
    /// Creates an unplanned staging. The lock keeps other processes from it until it is dropped.
    pub fn begin(
        request: StagingRequest,
        transfers: &[Transfer],
    ) -> Result<(Self, JournalLock), Error> {
        let began = clock::now();
        let directory = made_directory()?;
        let mut number = clock::unix_milliseconds();
        let (path, running) = loop {
            let path = directory.join(format!("{number}.{END}"));
            // Another staging may have started in the same millisecond.
            match Journal::reserve(&path)? {
                Some(running) => break (path, running),
                None => number += 1,
            }
        };
        let begun = create_journal(&path, &request, transfers);
        if begun.is_err() {
            Journal::remove(&path).ok(); // space may not suffice, and nothing else would remove it
        }
        let journal = begun?;
        let id = number.to_string();
        let staging = Self { id, journal, request, began };
        Ok((staging, running))
    }

    /// Opens a staging; none if it has no request yet.
    pub fn open(path: &Path) -> Result<Option<Self>, Error> {
        let journal = Journal::open_existing(path)?;
        let Some(request) = journal.meta::<String>("order")? else {
            return Ok(None);
        };
        let request = serde_json::from_str(&request)
            .map_err(|error| Error::Damaged { path: path.to_owned(), what: error.to_string() })?;
        let id = path.file_stem().unwrap_or_default().to_string_lossy();
        Ok(Some(Self { id: id.into_owned(), journal, request, began: clock::now() }))
    }

    /// Removes the journal.
    pub fn forget(self) -> Result<(), Error> {
        self.journal.discard()
    }

    pub fn shown(&self, failures: usize) -> Result<StagingStatus, Error> {
        let account = forebay_mover::staging_state(&self.journal)?;
        let pace = forebay_mover::throughput(&self.journal, &account)?;
        let counts = account.counts;
        let (all, missing) = (counts.all(), counts.missing());
        let state = if account.is_running {
            "running"
        } else if counts.is_complete() && account.is_planned {
            "done"
        } else if account.is_cancelled {
            "cancelled"
        } else if counts.is_open() || !account.is_planned {
            "interrupted"
        } else {
            "failed"
        };
        let notes = self.journal.notes()?.into_iter();
        Ok(StagingStatus {
            id: self.id.clone(),
            direction: if self.request.is_out { "out" } else { "in" },
            source: self.request.source.clone(),
            target: self.request.target.clone(),
            state,
            files: all.files,
            bytes: all.bytes,
            placed_files: counts.of(State::Placed).files,
            placed_bytes: counts.of(State::Placed).bytes,
            copied_bytes: pace.copied_bytes,
            bytes_per_s: pace.bytes_per_s,
            remaining_s: pace.remaining_s,
            missing_files: missing.files,
            missing_bytes: missing.bytes,
            open_directories: counts.open_directories,
            by_state: State::ALL
                .iter()
                .map(|state| (state.name(), counts.of(*state).files))
                .collect(),
            failed: counts.of(State::Failed).files + counts.other_failures,
            failures: self
                .journal
                .failures(failures)?
                .into_iter()
                .map(ShownFailure::from)
                .collect(),
            shortages: account.shortages,
            notes: notes
                .map(|(text, count, path)| (text, count, path.to_string_lossy().into_owned()))
                .collect(),
        })
    }
}

fn create_journal(
    path: &Path,
    request: &StagingRequest,
    transfers: &[Transfer],
) -> Result<Journal, Error> {
    let journal = Journal::open(path)?;
    journal.begin_plan()?; // a kill before the plan leaves a journal that is not planned
    journal.record_request(transfers)?;
    // Last, since a journal without this entry counts as not begun.
    let text = serde_json::to_string(request).map_err(std::io::Error::other);
    journal.set_meta("order", files::with_path(text, "write down", path)?)?;
    Ok(journal)
}

/// The journals of all stagings, oldest first.
pub fn all() -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    for directory in directories() {
        let directory = directory.join(STAGINGS);
        let names = match files::names_in(&directory) {
            Err(error) if error.is_absent() || error.is_denied() => continue,
            names => names?,
        };
        let paths = names.into_iter().map(|name| directory.join(name));
        found.extend(paths.filter(|path| path.extension().is_some_and(|end| end == END)));
    }
    found.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
    found.dedup();
    Ok(found)
}

/// The journal of the staging with this id.
pub fn with_id(id: &str) -> Result<Option<PathBuf>, Error> {
    let name = format!("{id}.{END}");
    let named = |path: &PathBuf| path.file_name().is_some_and(|found| *found == *name);
    Ok(all()?.into_iter().find(named))
}

/// Removes old completed stagings, and old ones that were killed before they began. Opens only journals that are older or beyond the limit.
pub fn prune_finished() -> Result<(), Error> {
    let now_s = clock::unix_seconds() as i64;
    for (newer, path) in all()?.into_iter().rev().enumerate() {
        let written_s = match files::status(&path) {
            Err(error) if error.is_not_found() => continue,
            status => status?.modified.0,
        };
        if now_s - written_s <= DONE_S_MAX && newer < NEWER_MAX {
            continue;
        }
        let staging = match StagingRecord::open(&path) {
            Ok(Some(staging)) => staging,
            // It was killed before it had a request: nothing was copied.
            Ok(None) => {
                let journal = Journal::open_existing(&path)?;
                if !journal.is_running()? {
                    journal.discard()?;
                }
                continue;
            }
            Err(_) => continue, // `status` reports damaged journals
        };
        let account = forebay_mover::staging_state(&staging.journal)?;
        if !account.is_running && account.is_planned && account.counts.is_complete() {
            staging.forget()?;
        }
    }
    Ok(())
}

fn made_directory() -> Result<PathBuf, Error> {
    let mut refused = None;
    for directory in directories() {
        let directory = directory.join(STAGINGS);
        match files::make_directories(&directory, 0o700) {
            Ok(_) => return Ok(directory),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    Err(refused.map_or(Error::NoSource(PathBuf::from("a state directory")), Error::Host))
}
