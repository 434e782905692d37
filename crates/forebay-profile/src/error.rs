//! The errors of records of I/O, with remedies.

use std::path::PathBuf;

/// The reason why a record of I/O cannot be started, read or completed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A call of the operating system failed.
    #[error(transparent)]
    Host(#[from] forebay_host::Error),
    /// No state directory can hold the record.
    #[error("no state directory takes the job's record")]
    NoState,
    /// A run of a series would add to the record of another run.
    #[error("there is a record of a run in {} already", .0.display())]
    RecordExists(PathBuf),
}

impl Error {
    /// The remedy.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Host(error) => error.hint(),
            Self::NoState => Some("set FOREBAY_STATE to a directory of yours"),
            Self::RecordExists(_) => Some("name another directory, or remove that one"),
        }
    }
}
