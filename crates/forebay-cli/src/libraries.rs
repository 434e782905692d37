//! Libraries that are loaded in front of a job's programs.

use std::path::PathBuf;

use forebay_host::{files, machine};
use forebay_profile::Libraries;

use forebay_terminal::CliError;

/// Observes MPI programs, and gives them the hints of `MPICH_MPIIO_HINTS`.
pub const MPI_LIBRARY: &str = "libforebay_mpi.so";

/// Beside the program as cargo builds it, or in the library folder as it is installed.
pub fn library(name: &str) -> Result<PathBuf, CliError> {
    let beside = machine::program_directory()?;
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
pub fn observers() -> Libraries {
    let of = |family: &str| library(&format!("{family}/{MPI_LIBRARY}")).ok();
    Libraries {
        openmpi: of("openmpi"),
        mpich: of("mpich"),
    }
}
