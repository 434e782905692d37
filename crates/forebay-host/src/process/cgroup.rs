//! Cgroups of version 2, one for each program of another user: what the program started ends with it, and the user's
//! other processes can be told from it.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::{Result, clock, files, with_context};

/// The file with the processes of a cgroup; writing moves a process into it.
pub(crate) const CGROUP_PROCESSES: &str = "cgroup.procs";
/// Writing 1 kills all processes of a cgroup and of those below it, also those that are just started. Linux 5.14.
const KILL: &str = "cgroup.kill";
/// How long the end of killed processes is waited for. One that hangs in the kernel keeps its cgroup.
const END_MAX: Duration = Duration::from_secs(1);
/// The same of processes that may have much memory to give back.
const KEPT_END_MAX: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(5);

/// A cgroup that holds those of programs.
#[derive(Debug)]
pub struct Cgroups {
    path: PathBuf,
    number: AtomicU64,
}

/// The cgroup of one program. Dropping it kills all processes in it.
#[derive(Debug)]
pub struct Cgroup {
    path: PathBuf,
}

/// A cgroup whose processes go on when this process has ended.
#[derive(Debug)]
pub struct KeptCgroup {
    path: PathBuf,
}

impl Cgroups {
    /// Makes the cgroup `name` in the directory of another one, and kills what a former process left in it.
    ///
    /// # Errors
    /// If this process may not make cgroups there, or the kernel is older than Linux 5.14.
    pub fn make(parent: &Path, name: &str) -> Result<Self> {
        let made = Self::open(parent, name)?;
        for name in made.names()? {
            drop(Cgroup { path: made.path.join(name) });
        }
        Ok(made)
    }

    /// The same, with what a former process left in it.
    ///
    /// # Errors
    /// As [`Cgroups::make`].
    pub fn open(parent: &Path, name: &str) -> Result<Self> {
        let path = parent.join(name);
        make(&path)?;
        files::status(&path.join(KILL))?;
        Ok(Self { path, number: AtomicU64::new(0) })
    }

    /// The names of the cgroups in it.
    ///
    /// # Errors
    /// If its directory cannot be read.
    pub fn names(&self) -> Result<Vec<OsString>> {
        let kinds = files::kinds_in(&self.path)?.into_iter();
        Ok(kinds
            .filter(|(_, kind)| *kind == files::Kind::Directory)
            .map(|(name, _)| name)
            .collect())
    }

    /// Makes the cgroup `name`, unless it exists.
    ///
    /// # Errors
    /// If the directory cannot be made.
    pub fn keep(&self, name: &str) -> Result<KeptCgroup> {
        let path = self.path.join(name);
        make(&path)?;
        Ok(KeptCgroup { path })
    }

    /// Kills all processes of the cgroup `name`, and removes it. One that does not exist is no error.
    ///
    /// # Errors
    /// If processes hang in the kernel.
    pub fn end(&self, name: &str) -> Result<()> {
        let path = self.path.join(name);
        let deadline = clock::now() + KEPT_END_MAX;
        loop {
            std::fs::write(path.join(KILL), "1").ok(); // it may be removed already
            match with_context(std::fs::remove_dir(&path), "remove cgroup", &path) {
                Err(error) if error.is_not_found() => return Ok(()),
                Err(error) if clock::now() > deadline => return Err(error),
                Err(_) => clock::sleep(PAUSE),
                Ok(()) => return Ok(()),
            }
        }
    }

    /// The directory of this cgroup.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the cgroup of a program. Its name begins with `name`.
    ///
    /// # Errors
    /// If the directory cannot be made.
    pub fn add(&self, name: &str) -> Result<Cgroup> {
        loop {
            let number = self.number.fetch_add(1, Ordering::Relaxed);
            let path = self.path.join(format!("{name}-{number}"));
            match with_context(std::fs::create_dir(&path), "create cgroup", &path) {
                Ok(()) => return Ok(Cgroup { path }),
                // A process that a former one left there hangs in the kernel.
                Err(error) if error.already_exists() => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Makes the directory of a cgroup, unless it exists.
fn make(path: &Path) -> Result<()> {
    match with_context(std::fs::create_dir(path), "create cgroup", path) {
        Err(error) if error.already_exists() => Ok(()),
        made => made,
    }
}

/// The open file that a process writes 0 to, to move into a cgroup.
fn procs_file(cgroup: &Path) -> Result<File> {
    files::open_to_write(&cgroup.join(CGROUP_PROCESSES))
}

impl KeptCgroup {
    pub(super) fn procs_file(&self) -> Result<File> {
        procs_file(&self.path)
    }
}

impl Cgroup {
    pub(super) fn procs_file(&self) -> Result<File> {
        procs_file(&self.path)
    }

    /// Kills all its processes.
    pub(super) fn kill(&self) {
        std::fs::write(self.path.join(KILL), "1").ok(); // it may be removed already
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        self.kill();
        let deadline = clock::now() + END_MAX;
        while std::fs::remove_dir(&self.path)
            .is_err_and(|error| error.kind() == std::io::ErrorKind::ResourceBusy)
            && clock::now() < deadline
        {
            clock::sleep(PAUSE);
        }
    }
}
