//! Output for the user: messages on standard error, results on standard output, progress bars.
//! Assumes that both streams may be closed. Never reads input or ends the process.

mod drain;
mod error;
mod installation;
mod messages;
mod progress;
mod write_failures;

pub use drain::{drain_counts, drain_exit_code, print_drain_failures};
pub use error::CliError;
pub use installation::{
    MPI_LIBRARY, PYTHON_PROGRAM, PYTHON_PROGRAM_REMEDY, library_directory, machine_directory,
    observers, preload_library, profile_directory, python_program,
};
pub use messages::{
    Refusal, print_error, print_error_line, print_failures, print_hint, print_json,
    print_json_error, print_status, print_stdout, print_warning,
};
pub use progress::Progress;
pub use write_failures::{print_incomplete, print_write_failures};
