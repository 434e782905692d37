//! The job's own directory. It reserves the id and holds a copy of the script. Where there is no
//! scheduler it holds the launchers too, which come first in the job's PATH.

use std::ffi::{OsStr, OsString};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use forebay_host::{clock, files};

use crate::Error;

/// The runs that a process belongs to, separated by colons. Each entry is the directory of one job;
/// a nested job belongs to both runs.
pub const RUN_VARIABLE: &str = "FOREBAY_RUN";

/// Random numbers behind the time in an id: as many as fit into 64 bits with it.
pub const RANDOM_MAX: u128 = 1_000_000;

/// A number that others cannot guess.
fn random_number() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// The files of a job outside of its allocation.
#[derive(Debug)]
pub struct JobDirectory {
    id: String,
    path: PathBuf,
}

impl JobDirectory {
    /// Creates the directory. The id is the time in milliseconds or one of the next numbers, else the time and a random number. Like a
    /// Slurm id it has only digits; no id occurs twice, even if jobs run one after another.
    ///
    /// # Errors
    /// If the directory for temporary files cannot be used.
    pub fn make() -> Result<Self, Error> {
        const TRIES: usize = 100;
        let parent = std::env::temp_dir();
        let parent = files::real_path(&parent).map_err(|_| Error::TemporaryDirectory(parent))?;
        if parent.as_os_str().as_bytes().contains(&b':') || parent.to_str().is_none() {
            return Err(Error::TemporaryDirectory(parent)); // PATH cannot contain such a path
        }
        let now = clock::unix_milliseconds();
        // Others may have occupied the next numbers, but no random ones.
        let near = (0..10).map(|next| now + next);
        let random = || now * RANDOM_MAX + u128::from(random_number()) % RANDOM_MAX;
        let mut ids = near.chain(std::iter::repeat_with(random)).take(TRIES);
        let (id, path) = loop {
            let id = ids.next().unwrap_or(now);
            let path = parent.join(format!("forebay-{id}"));
            match files::make_directory(&path, 0o700) {
                Err(error) if error.already_exists() && ids.size_hint().0 > 0 => {}
                made => break made.map(|()| (id, path)).map_err(Error::TemporaryRefused)?,
            }
        };
        let id = id.to_string();
        Ok(Self { id, path })
    }

    /// Creates the directory of the script. An empty job directory belongs to a job that was never recorded.
    pub fn mark_recorded(&self) -> forebay_host::Result<()> {
        files::make_directory(&self.path.join("script"), 0o700)
    }

    /// The id that this directory reserves.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The path of this directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The value of [`RUN_VARIABLE`] for this job: the outer runs, then this one.
    pub fn with_outer_runs(&self) -> OsString {
        let mut runs = std::env::var_os(RUN_VARIABLE).unwrap_or_default();
        if !runs.is_empty() {
            runs.push(":");
        }
        runs.push(&self.path);
        runs
    }

    /// Mount point for building the view; the caller creates it.
    pub fn scratch(&self) -> PathBuf {
        self.path.join("view")
    }

    /// The directory of the launchers.
    pub fn launchers(&self) -> PathBuf {
        self.path.join("bin")
    }

    /// Links each launcher name to Forebay's program. Links of an earlier run stay.
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

    /// Writes a copy of the script, so that later changes of the original do not affect the running job.
    pub fn add_script(&self, script: &Path, bytes: &[u8]) -> forebay_host::Result<PathBuf> {
        let name = script.file_name().unwrap_or(OsStr::new("script"));
        write_new(&self.path.join("script").join(name), bytes)
    }

    /// Writes the file that bash reads when it starts.
    pub fn add_bash_start_up(&self, text: &str) -> forebay_host::Result<PathBuf> {
        write_new(&self.path.join("bash_env"), text.as_bytes())
    }

    /// Writes the file for `PBS_NODEFILE` and `LSB_DJOB_HOSTFILE`.
    pub fn add_node_file(&self, lines: &str) -> forebay_host::Result<PathBuf> {
        write_new(&self.path.join("nodes"), lines.as_bytes())
    }

    /// Removes the directory. It may be missing: a job can clear the directory for temporary files.
    pub fn remove(self) -> forebay_host::Result<()> {
        match files::remove_tree(&self.path) {
            Err(error) if error.is_not_found() => Ok(()),
            removed => removed,
        }
    }
}

/// Replaces the file of an earlier run. Creates its directory, which the job may have removed.
fn write_new(path: &Path, content: &[u8]) -> forebay_host::Result<PathBuf> {
    if let Some(parent) = path.parent() {
        files::make_directories(parent, 0o700)?;
    }
    files::remove_if_present(path)?;
    let mut file = files::make_file(path, 0o700)?;
    let written = std::io::Write::write_all(&mut file, content);
    files::with_path(written, "write", path).map(|()| path.to_owned())
}
