//! The lock of a journal. The process that runs the journal locks a file and writes its identity into it.
//! Where the file system has no locks, the identity alone counts.

use std::fs::File;
use std::io::Write;

use std::path::Path;

use forebay_host::process::Identity;
use forebay_host::{files, system};

use crate::error::Error;
use crate::journal::database::Journal;
use crate::journal::file_names::{IN_MEMORY, LOCK_END, path_with_suffix};

/// The exclusive right to run a journal, until it is dropped.
#[derive(Debug)]
pub struct JournalLock(Option<File>);

impl Drop for JournalLock {
    fn drop(&mut self) {
        if let Some(file) = &self.0 {
            file.set_len(0).ok(); // a leftover identity is valid only while its process lives
        }
    }
}

impl Journal {
    /// Locks the journal.
    ///
    /// # Errors
    /// [`Error::Locked`] if another process of this machine holds the lock.
    pub fn lock(&self) -> Result<JournalLock, Error> {
        if self.path() == Path::new(IN_MEMORY) {
            return Ok(JournalLock(None)); // only this process can use it
        }
        let path = path_with_suffix(self.path(), LOCK_END);
        let locked = files::lock_or_create(&path)?;
        let taken = locked.filter(|_| !is_held_by_other_process(&path));
        let file = taken.ok_or_else(|| Error::Locked(self.path().to_owned()))?;
        write_owner(file, &path)
    }

    /// Reserves the name of a journal to be created, and locks it. Returns `None` if the name is
    /// taken.
    pub fn reserve(path: &Path) -> Result<Option<JournalLock>, Error> {
        let lock = path_with_suffix(path, LOCK_END);
        match files::make_file(&lock, 0o600) {
            Err(error) if error.already_exists() => Ok(None),
            Err(error) => Err(error.into()),
            Ok(_) => files::lock(&lock)?.map(|file| write_owner(file, &lock)).transpose(),
        }
    }

    /// Does a process run this journal?
    pub fn is_running(&self) -> Result<bool, Error> {
        let path = path_with_suffix(self.path(), LOCK_END);
        match files::is_locked(&path) {
            Err(error) if error.is_not_found() => Ok(false),
            is_locked => Ok(is_locked? || is_held_by_other_process(&path)),
        }
    }
}

/// A process number is valid within its namespace, until the machine restarts.
pub(crate) fn pid_namespace_key() -> Result<String, Error> {
    Ok(format!("{} {}", system::boot_id()?, system::pid_namespace()?))
}

fn write_owner(mut file: File, path: &Path) -> Result<JournalLock, Error> {
    let Identity { pid, started_ticks } = Identity::ours()?;
    let name = format!("{pid} {started_ticks} {}\n", pid_namespace_key()?);
    let written = file.set_len(0).and_then(|()| file.write_all(name.as_bytes()));
    files::with_path(written, "write", path)?;
    Ok(JournalLock(Some(file)))
}

/// Does this file hold the identity of another living process? Forebay cannot check processes in
/// other containers or on other machines.
fn is_held_by_other_process(path: &Path) -> bool {
    let Ok(text) = files::read_to_string(path) else {
        return false;
    };
    let mut words = text.trim_end().splitn(3, ' ');
    let (pid, started, space) = (words.next(), words.next(), words.next());
    let number = pid.and_then(|word| word.parse().ok());
    let started = started.and_then(|word| word.parse().ok());
    let (Some(pid), Some(started_ticks)) = (number, started) else {
        return false; // empty, or incomplete because the writer was killed
    };
    let other = Identity { pid, started_ticks };
    space == pid_namespace_key().ok().as_deref()
        && other.is_alive()
        && Identity::ours().is_ok_and(|ours| ours != other)
}
