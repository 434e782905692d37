//! The error of a failed command.

use std::path::Path;

use forebay_host::exit_codes::FAILED;

use crate::messages::{print_error, print_json_error};

/// Why a command failed.
#[derive(Debug)]
pub struct CliError {
    /// What failed.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Exit code of the command.
    pub exit_code: i32,
}

impl CliError {
    /// An error without hint and with exit code 1.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, exit_code: FAILED }
    }

    /// The same error with a hint.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The same error with another exit code.
    #[must_use]
    pub fn with_exit_code(self, exit_code: i32) -> Self {
        Self { exit_code, ..self }
    }

    /// An error of a job or its command, with the exit code that it defines.
    #[must_use]
    pub fn of_job(error: forebay_job::Error) -> Self {
        let exit_code = error.exit_code();
        Self::from(error).with_exit_code(exit_code)
    }

    /// Prints the error. Returns the exit code.
    pub fn print(&self) -> i32 {
        print_error(&self.message, self.hint.as_deref(), self.exit_code)
    }

    /// As [`CliError::print`]; with `as_json`, also prints JSON with the path of the I/O record.
    pub fn print_with_json(&self, as_json: bool, profile: Option<&Path>) -> i32 {
        let exit_code = self.print();
        if as_json {
            return print_json_error(&self.message, self.hint.as_deref(), profile, exit_code);
        }
        exit_code
    }
}

impl From<forebay_host::Error> for CliError {
    fn from(error: forebay_host::Error) -> Self {
        Self { hint: error.hint().map(str::to_owned), ..Self::new(error.to_string()) }
    }
}

/// Converts errors that have a hint.
macro_rules! with_own_hint {
    ($($error:ty),*) => {$(
        impl From<$error> for CliError {
            fn from(error: $error) -> Self {
                Self {
                    hint: error.hint(),
                    ..Self::new(error.to_string())
                }
            }
        }
    )*};
}

with_own_hint!(
    forebay_job::Error,
    forebay_persistent::Error,
    forebay_recovery::Error,
    forebay_mover::Error,
    forebay_onclose::Error
);
