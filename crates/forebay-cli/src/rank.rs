//! One task of `srun`: the variables Slurm would set for it, then the program itself.

use std::ffi::OsString;

use forebay_host::process::{command, replace_by};

use crate::launch::first_variable;
use crate::messages::fail;

/// Slurm's variable, and where Open MPI, MPICH and PMIx say the same.
const VARIABLES: [(&str, &[&str]); 4] = [
    (
        "SLURM_PROCID",
        &["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"],
    ),
    (
        "SLURM_LOCALID",
        &["OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"],
    ),
    ("SLURM_NTASKS", &["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"]),
    ("SLURM_NPROCS", &["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"]),
];

/// Becomes the program.
pub fn become_program(words: &[OsString]) -> i32 {
    let Some((program, arguments)) = words.split_first() else {
        return fail("no program to start", None, 2);
    };
    let mut process = command(program);
    process.args(arguments);
    for (name, sources) in VARIABLES {
        if let Some(value) = first_variable(sources) {
            process.env(name, value);
        }
    }
    let error = replace_by(process);
    fail(
        &error.to_string(),
        Some("is it executable, and in PATH?"),
        127,
    )
}
