//! Logs the destination directories of a drain before each copy. Partial files of a killed drain
//! are found with this log, since no journal names them.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use forebay_host::files;
use forebay_mover::remove_parts_in;
use parking_lot::Mutex;

use crate::RecordFile;

/// Separates two paths; no path contains it.
const SEPARATOR: u8 = 0;

/// The tag in partial-file names of one drain thread.
pub fn tag(job: &str, thread: usize) -> String {
    format!("{job}-d{thread}")
}

/// The log of one job.
#[derive(Debug)]
pub struct TargetLog {
    path: PathBuf,
    list: Mutex<(HashSet<PathBuf>, Option<File>)>,
}

impl TargetLog {
    /// The log of this job. Creates no file yet.
    pub fn of(recorded: &RecordFile) -> Self {
        Self { path: recorded.target_log_path(), list: Mutex::default() }
    }

    /// Logs a directory; call it before copying a file into it.
    pub fn append(&self, directory: &Path) -> forebay_host::Result<()> {
        let mut list = self.list.lock();
        let (known, file) = &mut *list;
        if known.contains(directory) {
            return Ok(());
        }
        let file = match file {
            Some(file) => file,
            None => file.insert(files::open_to_append(&self.path)?),
        };
        let mut line = directory.as_os_str().as_bytes().to_vec();
        line.push(SEPARATOR);
        files::with_path(file.write_all(&line), "write", &self.path)?;
        known.insert(directory.to_owned());
        Ok(())
    }
}

impl RecordFile {
    /// Whether a drain of the job copied a file.
    pub fn has_drained(&self) -> bool {
        files::status(&self.target_log_path()).is_ok()
    }

    fn target_log_path(&self) -> PathBuf {
        self.path().with_extension("DRAINED-INTO")
    }

    /// Removes partial files of a killed drain. Returns directories that cannot be listed.
    pub fn remove_drained_parts(&self) -> forebay_host::Result<Vec<PathBuf>> {
        let mut unlisted = Vec::new();
        let list = match files::read_bytes(&self.target_log_path()) {
            Err(error) if error.is_not_found() => return Ok(unlisted),
            list => list?,
        };
        let begin = format!("{}-d", self.record.id);
        for directory in list.split(|byte| *byte == SEPARATOR).filter(|path| !path.is_empty()) {
            let directory = Path::new(OsStr::from_bytes(directory));
            if !remove_parts_in(directory, &begin, false)? {
                unlisted.push(directory.to_owned());
            }
        }
        Ok(unlisted)
    }

    pub(crate) fn remove_target_log(&self) -> forebay_host::Result<()> {
        files::remove_if_present(&self.target_log_path())
    }
}
