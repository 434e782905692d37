//! Runs one task of a step, with the variables and files that its launcher would provide.
//! Assumes that the real launcher has set the rank. Removes its own variables before the program starts.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use forebay_host::process::{command, replace_by};
use forebay_host::{exit_codes, files};
use forebay_terminal::print_error;

use crate::mpi_launcher::first_variable;
use crate::symbols::of_rank;

/// Names the file that each task uses as standard input.
pub const INPUT_VARIABLE: &str = "FOREBAY_TASK_INPUT";
/// Names the file for standard output of each task. See [`of_rank`].
pub const OUTPUT_VARIABLE: &str = "FOREBAY_TASK_OUTPUT";
/// The same for standard error.
pub const ERROR_VARIABLE: &str = "FOREBAY_TASK_ERROR";

/// Variables that list the launcher's names for the rank, the rank on the node, and the number of
/// tasks, separated by spaces.
pub const NAMES: [&str; 3] =
    ["FOREBAY_NAMES_OF_RANK", "FOREBAY_NAMES_OF_LOCAL_RANK", "FOREBAY_NAMES_OF_SIZE"];
/// The variables of Open MPI, MPICH and PMIx for the same values.
const SOURCES: [&[&str]; 3] = [
    &["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"],
    &["OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"],
    &["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"],
];

/// Replaces this process by the program. Returns an exit code on failure.
pub fn exec_rank(words: &[OsString]) -> i32 {
    let Some((program, arguments)) = words.split_first() else {
        return print_error("no program to start", None, 2);
    };
    let mut process = command(program);
    process.args(arguments);
    for (names, sources) in NAMES.into_iter().zip(SOURCES) {
        let names = std::env::var(names).unwrap_or_default();
        if let Some(value) = first_variable(sources) {
            process.envs(names.split_ascii_whitespace().map(|name| (name, &value)));
        }
    }
    if let Err(error) = attach_streams(&mut process) {
        return print_error(&error.to_string(), None, exit_codes::FAILED);
    }
    let error = replace_by(process);
    print_error(&error.to_string(), Some("is it executable, and in PATH?"), exit_codes::CANNOT_RUN)
}

fn attach_streams(process: &mut Command) -> forebay_host::Result<()> {
    let rank = first_variable(SOURCES[0]).unwrap_or_default();
    let rank = rank.to_string_lossy();
    let path = |variable| {
        let name = std::env::var_os(variable)?;
        Some(of_rank(Path::new(&name), &rank))
    };
    if let Some(path) = path(INPUT_VARIABLE) {
        process.stdin(files::open_to_read(&path)?);
    }
    let output = path(OUTPUT_VARIABLE);
    let error = path(ERROR_VARIABLE);
    let [output, error] = files::open_streams(output.as_deref(), error.as_deref())?;
    if let Some(file) = output {
        process.stdout(file);
    }
    if let Some(file) = error {
        process.stderr(file);
    }
    for variable in [INPUT_VARIABLE, OUTPUT_VARIABLE, ERROR_VARIABLE].iter().chain(&NAMES) {
        process.env_remove(variable);
    }
    Ok(())
}
