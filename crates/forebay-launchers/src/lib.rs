//! Stand-ins for programs that job scripts of other machines call: launchers, `module`, `lfs`, `spectral_wait.py`.
//! Assumes that the script runs in a job of Forebay. Never changes what a launcher's options mean.

mod aprun;
mod flux;
mod jsrun;
mod lfs;
mod module;
mod mpi_launcher;
mod mpiexec;
mod options;
mod rank;
mod spectral;
mod srun;
mod step;

use std::ffi::OsString;

pub use rank::exec_rank;

/// Called with the words behind its name; returns the exit code.
pub type Main = fn(&[OsString]) -> i32;

/// All stand-ins.
const STAND_INS: &[(&str, Main)] = &[
    ("mpiexec", mpiexec::mpiexec),
    ("mpirun", mpiexec::mpiexec),
    ("srun", |words| step::launch(&srun::SRUN, words)),
    ("jsrun", |words| step::launch(&jsrun::JSRUN, words)),
    ("aprun", |words| step::launch(&aprun::APRUN, words)),
    ("flux", flux::flux),
    ("module", module::module),
    ("spectral_wait.py", spectral::spectral_wait),
    (LFS, lfs::main),
];
/// There is striping to set on the emulated file system only.
const LFS: &str = "lfs";

/// Names of the stand-ins that a job has.
#[must_use]
pub fn names(emulated: bool) -> Vec<&'static str> {
    let names = STAND_INS.iter().map(|(name, _)| *name);
    names.filter(|name| emulated || *name != LFS).collect()
}

/// The stand-in of this name.
#[must_use]
pub fn stand_in(name: &str) -> Option<Main> {
    let found = STAND_INS.iter().find(|(known, _)| *known == name);
    found.map(|(_, main)| *main)
}
