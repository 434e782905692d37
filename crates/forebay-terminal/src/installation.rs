//! Where Forebay's own libraries and programs are: beside the running program, or where `make install` put them.

use std::path::PathBuf;

use forebay_host::{files, system};
use forebay_profile::Libraries;

use crate::CliError;

/// Observes MPI programs, and gives them the hints of `MPICH_MPIIO_HINTS`.
pub const MPI_LIBRARY: &str = "libforebay_mpi.so";

/// Beside the program as cargo builds it, or in the library folder as it is installed.
///
/// # Errors
/// If it is not installed.
pub fn library(name: &str) -> Result<PathBuf, CliError> {
    let beside = system::program_directory()?;
    let places = [beside.join(name), beside.join("../lib/forebay").join(name)];
    let found = places.iter().find_map(|place| files::real_path(place).ok());
    found.ok_or_else(|| {
        let beside = beside.display();
        CliError::new(format!(
            "{name} is neither in {beside} nor in ../lib/forebay"
        ))
        .with_hint("run make build, or make install")
    })
}

/// Those that observe MPI programs, as far as they are there.
#[must_use]
pub fn observers() -> Libraries {
    let of = |family: &str| library(&format!("{family}/{MPI_LIBRARY}")).ok();
    Libraries {
        openmpi: of("openmpi"),
        mpich: of("mpich"),
    }
}

/// The program of the verbs that are written in Python.
pub const PYTHON_PROGRAM: &str = "forebay-py";

/// `forebay-py`: beside us, else in PATH.
#[must_use]
pub fn python_program() -> Option<PathBuf> {
    let beside = system::program_directory().ok()?.join(PYTHON_PROGRAM);
    if files::status(&beside).is_ok() {
        return Some(beside);
    }
    system::find_other_program(PYTHON_PROGRAM)
}

/// The folder of our libraries, as it is built and installed.
#[must_use]
pub fn library_directory() -> Option<PathBuf> {
    let directory = system::program_directory().ok()?.join("../lib/forebay");
    files::real_path(&directory).ok()
}

/// The library that delays calls of the emulated file system.
///
/// # Errors
/// If it is not installed.
pub fn preload_library() -> Result<PathBuf, CliError> {
    library("libforebay_pfsmodel_preload.so")
}
