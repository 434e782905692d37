//! Detects the MPI implementation from its launcher.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use forebay_host::process::{command, run_captured};
use forebay_host::system::find_other_program;

/// The time limit for `--version`.
const ANSWER_MS_MAX: u64 = 2_000;

/// The MPI implementation of a launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MpiFamily {
    /// Open MPI.
    OpenMpi,
    /// MPICH, Intel MPI and their relatives.
    Hydra,
    /// Another implementation.
    Unknown,
}

impl MpiFamily {
    /// From the output of the launcher's `--version`.
    pub fn of(said: &str) -> Self {
        if said.contains("Open MPI") || said.contains("OpenRTE") {
            Self::OpenMpi
        } else if said.contains("HYDRA") || said.contains("Intel(R) MPI") {
            Self::Hydra
        } else {
            Self::Unknown
        }
    }

    /// Of a launcher, from its `--version`; `Unknown` without an answer within 2 s.
    pub fn of_launcher(launcher: impl AsRef<OsStr>) -> Self {
        let mut launcher = command(launcher);
        launcher.arg("--version");
        match run_captured(launcher, Duration::from_millis(ANSWER_MS_MAX), &|| true) {
            Ok(Some(answer)) => Self::of(&answer.output),
            // A launcher that does not answer cannot start ranks either.
            Ok(None) | Err(_) => Self::Unknown,
        }
    }

    /// Of the first launcher in PATH.
    pub(crate) fn in_path() -> Self {
        let found = ["mpiexec", "mpirun"].into_iter().find_map(find_other_program);
        found.map_or(Self::Unknown, Self::of_launcher)
    }
}

/// Whether the program starts ranks itself, so that its MPI counts, not the one in PATH.
pub fn is_launcher(program: &OsStr) -> bool {
    let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("mpiexec") || name.starts_with("mpirun")
}
