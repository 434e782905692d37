//! Verbs written in Python: `forebay VERB` becomes `forebay-py VERB` (decision 9).

use std::ffi::OsString;

use forebay_host::exit_codes::{CANNOT_RUN, FAILED};
use forebay_host::process::{command, replace_by};
use forebay_host::system;
use forebay_terminal::{
    PYTHON_PROGRAM, PYTHON_PROGRAM_REMEDY, library_directory, machine_directory, print_error,
    python_program,
};

use crate::effective_config;

/// Replaces this process by the Python program. Returns an exit code if that fails.
pub fn exec_python_verb(verb: &str, words: &[OsString]) -> i32 {
    let Some(program) = python_program() else {
        let message = format!(
            "{PYTHON_PROGRAM}, which makes reports and tunes, is neither in the directory of forebay nor in PATH"
        );
        return print_error(&message, Some(PYTHON_PROGRAM_REMEDY), CANNOT_RUN);
    };
    let state = match forebay_profile::state_directory() {
        Ok(state) => state,
        Err(error) => return print_error(&error.to_string(), error.hint(), FAILED),
    };
    let mut python = command(program);
    python.arg(verb).args(words);
    python.envs(effective_config::variables_of_python()).env("FOREBAY_STATE", state);
    match system::this_program() {
        Ok(ours) => python.env("FOREBAY_PROGRAM", ours),
        Err(error) => return print_error(&error.to_string(), None, CANNOT_RUN),
    };
    if let Some(libraries) = library_directory() {
        python.env("FOREBAY_LIBRARY", libraries);
    }
    if let Some(machines) = machine_directory() {
        python.env("FOREBAY_MACHINES", machines);
    }
    let error = replace_by(python);
    let hint = match error.source.kind() {
        std::io::ErrorKind::PermissionDenied => {
            "its Python may not be run by this user: install it with one that all users can run, such as make install as root does"
        }
        _ => PYTHON_PROGRAM_REMEDY,
    };
    print_error(&error.to_string(), Some(hint), CANNOT_RUN)
}
