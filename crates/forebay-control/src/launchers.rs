//! The job's id, and the launchers that stand first in its PATH where there is no scheduler.

use std::path::{Path, PathBuf};

use forebay_host::{clock, files};

/// Names the directory of the stand-ins, so that each finds the real program behind it.
pub const SHIMS_VARIABLE: &str = "FOREBAY_SHIMS";

/// The directory of the stand-ins, in a process that a job of ours started.
#[must_use]
pub fn shim_directory() -> Option<PathBuf> {
    std::env::var_os(SHIMS_VARIABLE).map(PathBuf::from)
}

/// A directory of links to our own program, each named as a launcher. Its name reserves the job's
/// id on this machine. Removed with [`Shims::remove`].
pub(crate) struct Shims {
    id: String,
    directory: PathBuf,
}

impl Shims {
    /// The id is the time in milliseconds, or the next number that is free: digits only, as
    /// Slurm's, and no id comes twice even if one job ends before the next begins.
    pub(crate) fn make(program: &Path, names: &[&str]) -> forebay_host::Result<Self> {
        const TRIES: u128 = 100;
        let first = clock::unix_milliseconds();
        let mut id = first;
        let directory = loop {
            let directory = std::env::temp_dir().join(format!("forebay-{id}"));
            match files::make_directory(&directory, 0o700) {
                Err(error) if error.already_exists() && id < first + TRIES => id += 1,
                made => break made.map(|()| directory)?,
            }
        };
        let id = id.to_string();
        let shims = Self { id, directory };
        for name in names {
            if let Err(error) = files::make_link(program, &shims.directory.join(name)) {
                shims.remove()?;
                return Err(error);
            }
        }
        Ok(shims)
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn remove(self) -> forebay_host::Result<()> {
        files::remove_tree(&self.directory)
    }
}
