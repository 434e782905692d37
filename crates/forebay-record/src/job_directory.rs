//! The job's own directory: it reserves the id, and holds a copy of the script and the launchers that come first in the
//! job's PATH where there is no scheduler.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use forebay_host::{clock, files};

use crate::Error;

/// The runs that a process belongs to, between colons: their jobs' directories, which no other run has.
/// A job within a job belongs to both.
pub const RUN_VARIABLE: &str = "FOREBAY_RUN";

/// The files of a job outside of its allocation. Removed with [`JobDirectory::remove`].
#[derive(Debug)]
pub struct JobDirectory {
    id: String,
    path: PathBuf,
}

impl JobDirectory {
    /// The id is the time in milliseconds, or the next number that is free: digits only, as
    /// Slurm's, and no id comes twice even if one job ends before the next begins.
    ///
    /// # Errors
    /// If the directory for temporary files cannot be used.
    pub fn make() -> Result<Self, Error> {
        const TRIES: u128 = 100;
        let parent = std::env::temp_dir();
        let parent = files::real_path(&parent).map_err(|_| Error::TemporaryDirectory(parent))?;
        if parent.as_os_str().as_bytes().contains(&b':') || parent.to_str().is_none() {
            return Err(Error::TemporaryDirectory(parent)); // PATH could not hold it
        }
        let first = clock::unix_milliseconds();
        let mut id = first;
        let path = loop {
            let path = parent.join(format!("forebay-{id}"));
            match files::make_directory(&path, 0o700) {
                Err(error) if error.already_exists() && id < first + TRIES => id += 1,
                made => break made.map(|()| path).map_err(Error::TemporaryRefused)?,
            }
        };
        let id = id.to_string();
        Ok(Self { id, path })
    }

    /// Makes the place of the script. A directory with nothing in it is one that was never recorded.
    pub fn mark_recorded(&self) -> forebay_host::Result<()> {
        files::make_directory(&self.path.join("script"), 0o700)
    }

    /// The id that it reserves.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The value of [`RUN_VARIABLE`].
    pub fn with_outer_runs(&self) -> OsString {
        let mut runs = std::env::var_os(RUN_VARIABLE).unwrap_or_default();
        if !runs.is_empty() {
            runs.push(":");
        }
        runs.push(&self.path);
        runs
    }

    /// Where a view is built; the directory is made then.
    pub fn scratch(&self) -> PathBuf {
        self.path.join("view")
    }

    /// Directory of the launchers.
    pub fn launchers(&self) -> PathBuf {
        self.path.join("bin")
    }

    /// Links to our own program, each named as a launcher; those of an earlier run stay.
    pub fn add_launchers(&self, program: &Path, names: &[&str]) -> forebay_host::Result<()> {
        let launchers = self.launchers();
        files::make_directories(&launchers, 0o700)?;
        for name in names {
            match files::make_link(program, &launchers.join(name)) {
                Err(error) if error.already_exists() => {}
                made => made?,
            }
        }
        Ok(())
    }

    /// The script as it was read, so that a change of the original does not reach a job half way.
    pub fn add_script(&self, script: &Path, text: &str) -> forebay_host::Result<PathBuf> {
        let name = script.file_name().unwrap_or(OsStr::new("script"));
        write_new(&self.path.join("script").join(name), text)
    }

    /// A file that bash reads when it starts.
    pub fn add_bash_start_up(&self, text: &str) -> forebay_host::Result<PathBuf> {
        write_new(&self.path.join("bash_env"), text)
    }

    /// `PBS_NODEFILE`, `LSB_DJOB_HOSTFILE`.
    pub fn add_node_file(&self, lines: &str) -> forebay_host::Result<PathBuf> {
        write_new(&self.path.join("nodes"), lines)
    }

    /// The job may have cleared the directory for temporary files itself.
    pub fn remove(self) -> forebay_host::Result<()> {
        match files::remove_tree(&self.path) {
            Err(error) if error.is_not_found() => Ok(()),
            removed => removed,
        }
    }
}

/// Replaces the file of an earlier run, which may also have cleared the directory for temporary files.
fn write_new(path: &Path, text: &str) -> forebay_host::Result<PathBuf> {
    if let Some(parent) = path.parent() {
        files::make_directories(parent, 0o700)?;
    }
    files::remove_if_present(path)?;
    let mut file = files::make_file(path, 0o700)?;
    let written = std::io::Write::write_all(&mut file, text.as_bytes());
    files::with_path(written, "write", path).map(|()| path.to_owned())
}
