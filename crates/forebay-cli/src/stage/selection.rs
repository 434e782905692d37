//! Selects the stagings that a command applies to.
//! Assumes that a journal can vanish when its staging completes. Never keeps a journal open unless its staging runs.

use std::path::Path;

use forebay_host::exit_codes::FAILED;
use forebay_host::files;
use forebay_mover::Error;
use forebay_terminal::{CliError, print_error, print_json};
use schemars::JsonSchema;
use serde::Serialize;

use super::job_staging;
use super::store::{self, StagingRecord, StagingStatus, with_id};
use crate::job_id::{self, Candidate};

/// Stagings and unreadable journals. Only running ones stay open, because of the limit of open files.
#[derive(Default)]
pub struct Selection {
    pub shown: Vec<StagingStatus>,
    /// Running stagings with their indices in `shown`.
    pub running: Vec<(usize, StagingRecord)>,
    unreadable: Vec<Unreadable>,
}

/// An unreadable journal in the output of `--json`.
#[derive(Serialize, JsonSchema)]
pub struct Unreadable {
    /// The id of the staging.
    id: String,
    /// Always `unreadable`.
    state: &'static str,
    /// The path of the journal.
    journal: String,
    /// Why it cannot be read.
    error: String,
    /// What to do about it.
    hint: Option<String>,
}

/// One entry of `--json`.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Entry<'a> {
    Staging(&'a StagingStatus),
    Unreadable(&'a Unreadable),
}

impl Selection {
    /// An error code if a journal cannot be read, since its state is unknown.
    pub fn code(&self) -> i32 {
        i32::from(!self.unreadable.is_empty())
    }

    pub fn add(&mut self, staging: StagingRecord, failures: usize) -> Result<(), Error> {
        let is_running = staging.journal.is_running()?; // before `shown`: it may end in between
        let shown = staging.shown(failures)?;
        if is_running {
            self.running.push((self.shown.len(), staging));
        }
        self.shown.push(shown);
        Ok(())
    }

    /// Prints the stagings and the unreadable journals.
    pub fn json(&self, code: i32) -> i32 {
        let shown = self.shown.iter().map(Entry::Staging);
        let unreadable = self.unreadable.iter().map(Entry::Unreadable);
        print_json(&shown.chain(unreadable).collect::<Vec<_>>(), code)
    }
}

/// Selects the named stagings, or all if none is named.
pub fn select(ids: &[String], failures: usize) -> Result<Selection, CliError> {
    let mut chosen = Selection::default();
    for id in ids {
        chosen.add(open_by_id(id)?, failures)?;
    }
    if !ids.is_empty() {
        return Ok(chosen);
    }
    for path in store::all()? {
        let opened = StagingRecord::open(&path);
        let added = opened.and_then(|found| {
            let added = found.map(|staging| chosen.add(staging, failures));
            added.unwrap_or(Ok(()))
        });
        match added {
            Err(_) if journal_vanished(&path) => {} // it was just completed
            Err(error) => chosen.unreadable.push(unreadable(&path, &error)),
            Ok(()) => {}
        }
    }
    Ok(chosen)
}

fn unreadable(journal: &Path, error: &Error) -> Unreadable {
    let (error, hint) = (error.to_string(), error.hint());
    print_error(&error, hint.as_deref(), FAILED);
    let id = journal.file_stem().unwrap_or_default();
    Unreadable {
        id: id.to_string_lossy().into_owned(),
        state: "unreadable",
        journal: journal.to_string_lossy().into_owned(),
        error,
        hint,
    }
}

/// The whole id of a staging or of a job. `last` is the newest one with a journal.
pub fn resolve(wanted: &str) -> Result<String, CliError> {
    let stagings = store::all()?;
    let id = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let stagings = stagings.iter().map(|path| Candidate { id: id(path), what: "a staging".into() });
    let jobs = forebay_record::records().map_err(forebay_recovery::Error::from)?.found;
    let candidates: Vec<_> = stagings.chain(jobs.iter().map(job_id::of_job)).collect();
    job_id::resolve(wanted, &candidates, |id| {
        let job = jobs.iter().find(|job| job.record.id == id);
        Ok(job.is_none_or(|job| job_staging::staging(job).is_ok()))
    })
}

/// As [`resolve`], for several.
pub fn resolve_all(wanted: &[String]) -> Result<Vec<String>, CliError> {
    wanted.iter().map(|one| resolve(one)).collect()
}

/// Opens a staging, or the staging of a job.
pub fn open_by_id(id: &str) -> Result<StagingRecord, CliError> {
    match (with_id(id)?, job_staging::with_id(id)?) {
        (Some(path), _) => match StagingRecord::open(&path) {
            Err(_) if journal_vanished(&path) => Err(not_found(id)), // it was just completed
            opened => opened?.ok_or_else(|| not_found(id)),
        },
        (None, Some(job)) => job_staging::staging(&job),
        (None, None) => Err(not_found(id)),
    }
}

pub fn journal_vanished(journal: &Path) -> bool {
    files::status(journal).is_err_and(|error| error.is_not_found())
}

pub fn not_found(id: &str) -> CliError {
    let hint = "forebay stage list names those that are known; what is done is forgotten: at once in the foreground, \
        after 7 days in the background";
    let message = format!("there is no staging {id}");
    CliError::new(message).with_hint(hint)
}
