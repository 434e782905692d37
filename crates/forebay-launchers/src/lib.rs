//! Stand-ins for programs that job scripts call: launchers, `module`, `lfs`, `spectral_wait.py`.
//! Assumes that the script runs in a job of Forebay. Never changes what options of a launcher mean.

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
mod symbols;

use std::ffi::OsString;

pub use rank::exec_rank;

/// Runs a stand-in with its arguments, without the program name. Returns the exit code.
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
/// Available only with the emulated file system.
const LFS: &str = "lfs";

/// The names of the stand-ins in a job.
#[must_use]
pub fn names(emulated: bool) -> Vec<&'static str> {
    let names = STAND_INS.iter().map(|(name, _)| *name);
    names.filter(|name| emulated || *name != LFS).collect()
}

/// The stand-in with this name.
#[must_use]
pub fn stand_in(name: &str) -> Option<Main> {
    let found = STAND_INS.iter().find(|(known, _)| *known == name);
    found.map(|(_, main)| *main)
}
