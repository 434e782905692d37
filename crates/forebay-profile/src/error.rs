//! Why I/O cannot be recorded, with the remedy.

use std::path::PathBuf;

/// Why a record of I/O cannot be begun, read or completed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine refused.
    #[error(transparent)]
    Host(#[from] forebay_host::Error),
    /// There is no place for it.
    #[error("no state directory takes the job's record")]
    NoState,
    /// A run of a series would add to what another one recorded.
    #[error("there is a record of a run in {} already", .0.display())]
    RecordExists(PathBuf),
}

impl Error {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Host(error) => error.hint(),
            Self::NoState => Some("set FOREBAY_STATE to a directory of yours"),
            Self::RecordExists(_) => Some("name another directory, or remove that one"),
        }
    }
}
