//! Which stagings a command means.

use std::path::Path;

use forebay_host::files;
use forebay_mover::Error;
use forebay_terminal::{CliError, print_error, print_json};
use serde::Serialize;

use super::job_staging;
use super::store::{self, StagingRecord, StagingStatus, with_id};

/// Stagings, and what should be some. Only those that run stay open: there may be more than a process may have files.
#[derive(Default)]
pub struct Selection {
    pub shown: Vec<StagingStatus>,
    /// Where they stand among those that are shown.
    pub running: Vec<(usize, StagingRecord)>,
    unreadable: Vec<Unreadable>,
}

/// A journal that cannot be read, as `--json` shows it among the others.
#[derive(Serialize)]
pub struct Unreadable {
    id: String,
    state: &'static str,
    journal: String,
    error: String,
    hint: Option<String>,
}

/// One entry of `--json`.
#[derive(Serialize)]
#[serde(untagged)]
enum Entry<'a> {
    Staging(&'a StagingStatus),
    Unreadable(&'a Unreadable),
}

impl Selection {
    /// Of a journal that cannot be read nobody can tell whether all has arrived.
    pub fn code(&self) -> i32 {
        i32::from(!self.unreadable.is_empty())
    }

    pub fn add(&mut self, staging: StagingRecord, failures: usize) -> Result<(), Error> {
        let is_running = staging.journal.is_running()?; // before it is looked at: it may be done just after
        let shown = staging.shown(failures)?;
        if is_running {
            self.running.push((self.shown.len(), staging));
        }
        self.shown.push(shown);
        Ok(())
    }

    /// What is shown, and what could not be read.
    pub fn json(&self, code: i32) -> i32 {
        let shown = self.shown.iter().map(Entry::Staging);
        let unreadable = self.unreadable.iter().map(Entry::Unreadable);
        print_json(&shown.chain(unreadable).collect::<Vec<_>>(), code)
    }
}

/// Those that are named, else all.
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
            Err(_) if journal_vanished(&path) => {} // it was done just now
            Err(error) => chosen.unreadable.push(unreadable(&path, &error)),
            Ok(()) => {}
        }
    }
    Ok(chosen)
}

fn unreadable(journal: &Path, error: &Error) -> Unreadable {
    let (error, hint) = (error.to_string(), error.hint());
    print_error(&error, hint.as_deref(), 1);
    let id = journal.file_stem().unwrap_or_default();
    Unreadable {
        id: id.to_string_lossy().into_owned(),
        state: "unreadable",
        journal: journal.to_string_lossy().into_owned(),
        error,
        hint,
    }
}

/// A staging, or that of a job.
pub fn open_by_id(id: &str) -> Result<StagingRecord, CliError> {
    match (with_id(id)?, job_staging::with_id(id)?) {
        (Some(path), _) => match StagingRecord::open(&path) {
            Err(_) if journal_vanished(&path) => Err(not_found(id)), // it was done just now
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
