//! The launcher of the machine's MPI.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use forebay_host::process::{command, run_captured};
use forebay_host::system::find_other_program;

/// What a launcher may take to say its version.
const ANSWER_MS_MAX: u64 = 2_000;

/// The MPI to which a launcher belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MpiFamily {
    /// Open MPI.
    OpenMpi,
    /// MPICH, Intel MPI and others of its family.
    Hydra,
    /// Something else.
    Unknown,
}

impl MpiFamily {
    /// From what the launcher says of its version.
    pub fn of(said: &str) -> Self {
        if said.contains("Open MPI") || said.contains("OpenRTE") {
            Self::OpenMpi
        } else if said.contains("HYDRA") || said.contains("Intel(R) MPI") {
            Self::Hydra
        } else {
            Self::Unknown
        }
    }

    /// Of this launcher, by its answer to `--version`; `Unknown` if there is none within 2 s.
    pub fn of_launcher(launcher: impl AsRef<OsStr>) -> Self {
        let mut launcher = command(launcher);
        launcher.arg("--version");
        match run_captured(launcher, Duration::from_millis(ANSWER_MS_MAX), &|| true) {
            Ok(Some(answer)) => Self::of(&answer.output),
            // What does not answer starts no ranks either.
            Ok(None) | Err(_) => Self::Unknown,
        }
    }

    /// Of the launcher that a job will find.
    pub(crate) fn in_path() -> Self {
        let found = ["mpiexec", "mpirun"].into_iter().find_map(find_other_program);
        found.map_or(Self::Unknown, Self::of_launcher)
    }
}

/// Does it start ranks itself, so that its MPI counts and not that of PATH?
pub fn is_launcher(program: &OsStr) -> bool {
    let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("mpiexec") || name.starts_with("mpirun")
}
