//! Finds the libraries and programs of Forebay, built by cargo or installed by `make install`.

use std::path::PathBuf;

use forebay_host::{files, system};
use forebay_profile::Libraries;

use crate::CliError;

/// The library that observes MPI programs and sets the hints of `MPICH_MPIIO_HINTS`.
pub const MPI_LIBRARY: &str = "libforebay_mpi.so";

/// Finds a library in the program's directory or in the library directory of an installation.
///
/// # Errors
/// If it is not installed.
pub fn library(name: &str) -> Result<PathBuf, CliError> {
    let directory = system::program_directory()?;
    system::installed_library(name).ok_or_else(|| {
        let directory = directory.display();
        CliError::new(format!("{name} is neither in {directory} nor in ../lib/forebay"))
            .with_hint("run make build, or make install")
    })
}

/// The installed libraries that observe MPI programs.
#[must_use]
pub fn observers() -> Libraries {
    let of = |family: &str| library(&format!("{family}/{MPI_LIBRARY}")).ok();
    Libraries { openmpi: of("openmpi"), mpich: of("mpich") }
}

/// The program with the verbs written in Python.
pub const PYTHON_PROGRAM: &str = "forebay-py";
/// How to get it.
pub const PYTHON_PROGRAM_REMEDY: &str =
    "install the wheel (docs/start/install.md), or from source run make build or make install";

/// `forebay-py`: in the program's directory, otherwise in PATH.
#[must_use]
pub fn python_program() -> Option<PathBuf> {
    let own = system::program_directory().ok()?.join(PYTHON_PROGRAM);
    if files::status(&own).is_ok() {
        return Some(own);
    }
    system::find_other_program(PYTHON_PROGRAM)
}

/// The directory of Forebay's libraries.
#[must_use]
pub fn library_directory() -> Option<PathBuf> {
    let directory = system::program_directory().ok()?.join("../lib/forebay");
    files::real_path(&directory).ok()
}

/// The directory of the installed machine files.
#[must_use]
pub fn machine_directory() -> Option<PathBuf> {
    let directory = system::program_directory().ok()?.join("../share/forebay/machines");
    files::real_path(&directory).ok()
}

/// The directory of the installed profiles of engines.
#[must_use]
pub fn profile_directory() -> Option<PathBuf> {
    let directory = system::program_directory().ok()?.join("../share/forebay/profiles");
    files::real_path(&directory).ok()
}

/// The library that delays calls of the emulated file system.
///
/// # Errors
/// If it is not installed.
pub fn preload_library() -> Result<PathBuf, CliError> {
    library("libforebay_pfsmodel_preload.so")
}
