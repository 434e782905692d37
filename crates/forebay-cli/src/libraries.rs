//! Libraries that are loaded in front of a job's programs.

use std::path::PathBuf;

use forebay_control::Libraries;
use forebay_host::{files, machine};

use crate::emulation::Failure;

/// Observes MPI programs, and gives them the hints of `MPICH_MPIIO_HINTS`.
pub const OBSERVER: &str = "libforebay_mpi.so";

/// Beside the program as cargo builds it, or in the library folder as it is installed.
pub fn library(name: &str) -> Result<PathBuf, Failure> {
    let beside = machine::program_directory().map_err(|error| (error.to_string(), None))?;
    let places = [beside.join(name), beside.join("../lib/forebay").join(name)];
    let found = places.iter().find_map(|place| files::real_path(place).ok());
    found.ok_or_else(|| {
        let message = format!(
            "{name} is neither in {} nor in ../lib/forebay",
            beside.display()
        );
        (message, Some("run make build, or make install".to_owned()))
    })
}

/// Those that observe MPI programs, as far as they are there.
pub fn observers() -> Libraries {
    let of = |family: &str| library(&format!("{family}/{OBSERVER}")).ok();
    Libraries {
        openmpi: of("openmpi"),
        mpich: of("mpich"),
    }
}
