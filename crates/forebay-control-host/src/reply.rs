//! The result of a program that Slurm starts.

use forebay_site::Error;

/// What a command prints, and its exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// For standard output.
    pub output: String,
    /// One line for standard error; the command failed.
    pub error: Option<String>,
}

impl From<Result<String, Error>> for Reply {
    fn from(result: Result<String, Error>) -> Self {
        match result {
            Ok(output) => Self { output, error: None },
            Err(error) => Self { output: String::new(), error: Some(error.to_string()) },
        }
    }
}
