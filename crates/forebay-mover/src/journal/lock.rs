//! The lock of a journal: the process that runs it locks a file and writes its identity into it.
//! The identity counts where the file system has no locks.

use std::fs::File;
use std::io::Write;

use std::path::Path;

use forebay_host::process::Identity;
use forebay_host::{files, system};

use crate::error::Error;
use crate::journal::database::Journal;
use crate::journal::file_names::{IN_MEMORY, LOCK_END, named_beside};

/// The right to carry out a journal, until it is dropped.
#[derive(Debug)]
pub struct JournalLock(Option<File>);

impl Drop for JournalLock {
    fn drop(&mut self) {
        if let Some(file) = &self.0 {
            file.set_len(0).ok(); // a name that stays counts no longer than its process lives
        }
    }
}

impl Journal {
    /// The right to carry it out.
    ///
    /// # Errors
    /// [`Error::Locked`] if another process of this machine has it.
    pub fn lock(&self) -> Result<JournalLock, Error> {
        if self.path() == Path::new(IN_MEMORY) {
            return Ok(JournalLock(None)); // nobody else has it
        }
        let path = named_beside(self.path(), LOCK_END);
        let locked = files::lock_or_create(&path)?;
        let taken = locked.filter(|_| !is_held_by_other_process(&path));
        let file = taken.ok_or_else(|| Error::Locked(self.path().to_owned()))?;
        write_owner(file, &path)
    }

    /// Takes the name of a journal that is to be made, and the right to carry it out; none if somebody has
    /// taken it.
    pub fn reserve(path: &Path) -> Result<Option<JournalLock>, Error> {
        let lock = named_beside(path, LOCK_END);
        match files::make_file(&lock, 0o600) {
            Err(error) if error.already_exists() => Ok(None),
            Err(error) => Err(error.into()),
            Ok(_) => files::lock(&lock)?.map(|file| write_owner(file, &lock)).transpose(),
        }
    }

    /// Does a process carry it out?
    pub fn is_running(&self) -> Result<bool, Error> {
        let path = named_beside(self.path(), LOCK_END);
        match files::lock(&path) {
            Err(error) if error.is_not_found() => Ok(false),
            locked => Ok(locked?.is_none() || is_held_by_other_process(&path)),
        }
    }
}

/// Numbers of processes are valid in their namespace, until the machine restarts.
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

/// Does another living process have its name in this file? Of one in another container, or on another machine,
/// we cannot tell.
fn is_held_by_other_process(path: &Path) -> bool {
    let Ok(text) = files::read_to_string(path) else {
        return false;
    };
    let mut words = text.trim_end().splitn(3, ' ');
    let (pid, started, space) = (words.next(), words.next(), words.next());
    let number = pid.and_then(|word| word.parse().ok());
    let started = started.and_then(|word| word.parse().ok());
    let (Some(pid), Some(started_ticks)) = (number, started) else {
        return false; // nobody's, or half written by one that was killed
    };
    let other = Identity { pid, started_ticks };
    space == pid_namespace_key().ok().as_deref()
        && other.is_alive()
        && Identity::ours().is_ok_and(|ours| ours != other)
}
