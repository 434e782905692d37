//! The journals of a job's own staging, as other processes open them.
//! Works outside of the job's view, too. Of a journal in the job's own memory it opens a copy: writes to it are lost.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use forebay_directive::Direction;
use forebay_host::files;
use forebay_mover::{Error as Unusable, Failure, Journal, StagingState};

use crate::pending::{NAME as REQUESTS, PendingStageOut, load_file, load_pending};
use crate::{Error, RecordFile};

/// Name of the stage-in journal in the job's directory.
pub const STAGE_IN: &str = "stage-in.journal";
/// Name of the stage-out journal in the allocation. Used if the state directory accepts none.
pub const STAGE_OUT: &str = "stage-out.journal";

impl RecordFile {
    /// The progress of the stage-out and its first failures; none if no stage-out began.
    pub fn staged_out(
        &self,
        failures: usize,
    ) -> Result<Option<(StagingState, Vec<Failure>)>, Error> {
        let Some(journal) = self.stage_out_journal()? else {
            return Ok(None);
        };
        Ok(Some((forebay_mover::staging_state(&journal)?, journal.failures(failures)?)))
    }

    /// The journal of the current or last staging: stage-out before stage-in; none if neither began.
    pub fn staging(&self) -> Result<Option<(Direction, Journal)>, Error> {
        if let Some(journal) = self.stage_out_journal()? {
            return Ok(Some((Direction::Out, journal)));
        }
        let begun = self.stage_in_journal()?;
        Ok(begun.map(|journal| (Direction::In, journal)))
    }

    /// Removes partial files of a stage-in.
    ///
    /// # Errors
    /// If a partial file cannot be removed, or the journal cannot be read.
    pub fn remove_partial_stage_in(&self) -> Result<(), Error> {
        if let Some(journal) = self.stage_in_journal()? {
            forebay_mover::remove_partial_files(&journal, &self.record.id)?;
        }
        Ok(())
    }

    fn stage_in_journal(&self) -> Result<Option<Journal>, Error> {
        let path = self.record.job_directory.join(STAGE_IN);
        if_exists(Journal::open_existing(&path), &path)
    }

    /// The journal of a stage-out that began, as seen from outside of the view. It is in the
    /// allocation if the state directory accepted none, else next to the record.
    pub fn stage_out_journal(&self) -> Result<Option<Journal>, Error> {
        let place = self.record.place.as_ref();
        let inside = place.map(|place| self.record.path_from_outside(&place.root));
        let inside = inside.map(|root| root.join(STAGE_OUT));
        let inside = inside.filter(|path| files::status(path).is_ok());
        let is_copied = inside.is_some() && place.is_some_and(|place| place.mounted);
        let path = inside.unwrap_or_else(|| self.journal());
        let opened = match is_copied {
            true => self.with_copy(&path, Journal::open_existing),
            false => Journal::open_existing(&path),
        };
        if_exists(opened, &path)
    }

    /// The pending requests of the job, read from outside of its view. The list is in the job's own allocation
    /// or next to the record: in a persistent allocation, a file of its name is a user's.
    pub fn open_requests(&self) -> Result<Vec<PendingStageOut>, Error> {
        let Some(place) = &self.record.place else {
            return load_pending(&self.requests_root());
        };
        let root = self.record.path_from_outside(&place.root);
        if !place.mounted {
            return load_pending(&root);
        }
        let path = root.join(REQUESTS);
        if files::status_of_name(&path).is_err_and(|error| error.is_not_found()) {
            return Ok(Vec::new());
        }
        let open = self.with_copy(&path, |copy| Ok(load_file(copy)))?;
        open.map_err(|error| Error::Requests { path, error })
    }

    /// Reads a copy of a database of another view. SQLite would resolve its links against the root of this
    /// process. The copy is in the job's directory or, if something removed that, next to the record. It is removed
    /// here; after a kill, one in the job's directory is removed with that.
    fn with_copy<T>(
        &self,
        database: &Path,
        read: impl FnOnce(&Path) -> Result<T, Unusable>,
    ) -> Result<T, Unusable> {
        let name = format!("copy-{}-{}", std::process::id(), CALLS.fetch_add(1, Relaxed));
        let copy = match files::status(&self.record.job_directory) {
            Err(error) if error.is_not_found() => self.path().with_extension(name),
            _ => self.record.job_directory.join(name),
        };
        let copied = copy_database(database, &copy).map_err(Unusable::from);
        let done = copied.and_then(|()| read(&copy));
        Journal::remove(&copy)?;
        done
    }
}

static CALLS: AtomicU64 = AtomicU64::new(0);
/// Attempts to copy a database while its writer checkpoints it.
const TRIES: usize = 10;
/// The header of a write-ahead log. It changes when the log restarts, after SQLite copied the log's
/// contents to the database.
const LOG_HEADER_BYTES: usize = 32;

/// Copies a database with its log. The writer may be alive, and its locks are invisible here. Both
/// copies are consistent if the log did not restart in between.
fn copy_database(database: &Path, copy: &Path) -> forebay_host::Result<()> {
    let log_of = |path: &Path| {
        let mut path = path.as_os_str().to_owned();
        path.push("-wal");
        PathBuf::from(path)
    };
    let header = |log: &[u8]| log[..log.len().min(LOG_HEADER_BYTES)].to_vec();
    let mut before = header(&bytes_of(&log_of(database))?);
    let (mut whole, mut log) = (Vec::new(), Vec::new());
    for _ in 0..TRIES {
        whole = files::read_bytes(database)?;
        log = bytes_of(&log_of(database))?;
        let after = header(&log);
        if after == before {
            break;
        }
        before = after;
    }
    for (path, bytes) in [(copy.to_owned(), whole), (log_of(copy), log)] {
        let mut file = files::make_file(&path, 0o600)?;
        files::with_path(file.write_all(&bytes), "write", &path)?;
    }
    Ok(())
}

/// The contents of a file; empty if it does not exist.
fn bytes_of(path: &Path) -> forebay_host::Result<Vec<u8>> {
    match files::read_bytes(path) {
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        bytes => bytes,
    }
}

/// The journal at `path`; none if it does not exist. Another missing path, such as that of its copy, is an error.
fn if_exists(opened: Result<Journal, Unusable>, path: &Path) -> Result<Option<Journal>, Error> {
    match opened {
        Err(Unusable::Host(error)) if error.is_not_found() && error.path == path => Ok(None),
        opened => Ok(Some(opened?)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{PendingList, PersistentUse, Record};
    use forebay_engine::AllocationDirectory;
    use forebay_store::persistent::namespace_in;

    /// A job below `scratch`: its record in `state`, its directory `job`, its allocation `own`.
    fn job_in(scratch: &Path, mounted: bool) -> RecordFile {
        let at = |name: &str| scratch.join(name);
        for name in ["state", "job", "own"] {
            files::make_directory(&at(name), 0o700).expect("made");
        }
        let record = Record::new("17", Path::new("job.sh"), &at("job")).expect("record");
        let mut job = record.create_in(&at("state"), false).expect("kept");
        job.record.place =
            Some(AllocationDirectory { root: at("own"), mounted, capacity_bytes: 1 });
        job
    }

    #[test]
    fn requests_are_read_from_the_own_allocation_alone() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let mut job = job_in(scratch.path(), false);
        let root = scratch.path().join("persistent");
        files::make_directories(&namespace_in(&root), 0o700).expect("made");
        let request = PendingStageOut {
            inner: "/a".into(),
            outer: "/b".into(),
            is_directory: false,
            left_out: BTreeSet::new(),
        };
        let list_in = |root: &Path| {
            let request = std::iter::once(request.clone());
            PendingList::in_allocation(root).add(request).expect("added");
        };
        list_in(&namespace_in(&root));
        let file = root.join("uses/17");
        job.record.persistent = vec![PersistentUse { name: "p".to_owned(), root, file }];
        let own = job.record.place.take();
        assert_eq!(job.open_requests().expect("read"), []);
        job.record.place = own;
        list_in(&scratch.path().join("own"));
        assert_eq!(job.open_requests().expect("read"), std::slice::from_ref(&request));
        files::remove_tree(&scratch.path().join("own")).expect("removed");
        assert_eq!(job.open_requests().expect("read"), []);
    }

    #[test]
    fn journal_in_memory_is_read_without_the_job_directory() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let at = |name: &str| scratch.path().join(name);
        let job = job_in(scratch.path(), true);
        assert!(job.stage_out_journal().expect("looked").is_none());
        Journal::open(&at("own").join(STAGE_OUT)).expect("made");
        for directory in ["job", "state"] {
            assert!(job.stage_out_journal().expect("read").is_some());
            let records = files::names_in(&at("state")).expect("listed").len();
            assert_eq!(records, 1, "no copy stays");
            files::remove_tree(&at(directory)).expect("removed");
        }
        job.stage_out_journal().expect_err("no directory takes the copy");
    }
}
