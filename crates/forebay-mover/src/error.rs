//! What stops a staging as a whole.

use std::path::{Path, PathBuf};

use crate::model::failure::Failure;

/// Why a transfer cannot be planned, or a journal not be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine refused.
    #[error(transparent)]
    Host(#[from] forebay_host::Error),
    /// Nothing is there.
    #[error("the source {} does not exist", .0.display())]
    NoSource(PathBuf),
    /// `type=file`, but it is no file.
    #[error("the source {} is not a file", .0.display())]
    NotAFile(PathBuf),
    /// `type=directory`, but it is none.
    #[error("the source {} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// The source holds its own target: it would grow for ever.
    #[error("the target {} lies in the source {}", target.display(), source_directory.display())]
    IntoItself {
        /// The directory to be staged.
        source_directory: PathBuf,
        /// Where it would go.
        target: PathBuf,
    },
    /// The journal cannot be read or written.
    #[error("the journal {} cannot be used: {error}", path.display())]
    Journal {
        /// Its file.
        path: PathBuf,
        /// What SQLite says.
        error: rusqlite::Error,
    },
    /// The file is not a journal, or a damaged one.
    #[error("the journal {} is damaged: {what}", path.display())]
    Damaged {
        /// Its file.
        path: PathBuf,
        /// How that shows.
        what: String,
    },
    /// Another process is at it.
    #[error("the journal {} is in hand: another process carries it out", .0.display())]
    Locked(PathBuf),
    /// The machine, or a limit of the user, allows no more threads.
    #[error("no thread can be started to stage {}: {error}", path.display())]
    NoThread {
        /// The source that was to be looked through, or the journal that was to be carried out.
        path: PathBuf,
        /// The system's answer.
        error: std::io::Error,
    },
    /// The process that looked through the sources was stopped.
    #[error("looking through the sources was interrupted")]
    PlanInterrupted(PathBuf),
    /// The process that looked whether all that had arrived is still there was stopped.
    #[error("looking whether all that has arrived is still there was interrupted")]
    LookInterrupted(PathBuf),
}

impl Error {
    pub(crate) fn journal(path: &Path, error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
        let path = path.to_owned();
        match error.sqlite_error_code() {
            Some(DatabaseCorrupt | NotADatabase) => Self::Damaged { path, what: error.to_string() },
            _ => Self::Journal { path, error },
        }
    }

    /// Was it that the journal's own file system has no room?
    pub(crate) fn is_journal_full(&self) -> bool {
        let Self::Journal { error, .. } = self else {
            return false;
        };
        error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull)
    }

    /// The number of the error, as in errno(3), where there is one for it.
    pub(crate) fn errno(&self) -> Option<i32> {
        match self {
            Self::Host(error) => error.source.raw_os_error(),
            Self::NoThread { error, .. } => error.raw_os_error(),
            Self::NoSource(_) => Some(libc::ENOENT),
            Self::NotAFile(_) | Self::IntoItself { .. } => Some(libc::EINVAL),
            Self::NotADirectory(_) => Some(libc::ENOTDIR),
            Self::Locked(_) => Some(libc::EBUSY),
            Self::Journal { .. } if self.is_journal_full() => Some(libc::ENOSPC),
            Self::PlanInterrupted(_) | Self::LookInterrupted(_) => Some(libc::ECANCELED),
            Self::Journal { .. } | Self::Damaged { .. } => None,
        }
    }

    /// What to do about it, where that can be said.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Damaged { path, .. } => format!(
                "what stands at the destinations is whole; remove {} and stage again: what is there \
                 already is not copied again",
                path.display()
            ),
            Self::Locked(_) => "wait for it, or cancel it".to_owned(),
            Self::Journal { .. } if self.is_journal_full() => {
                "make room where the journal lies, then run the same again".to_owned()
            }
            Self::Journal { path, error }
                if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ReadOnly) =>
            {
                format!(
                    "get the right to write {} and what lies beside it under the same name",
                    path.display()
                )
            }
            // Also where there was no room for what SQLite shares between processes.
            Self::Journal { path, error }
                if error.sqlite_error_code() == Some(rusqlite::ErrorCode::SystemIoFailure) =>
            {
                format!(
                    "is there room where {} lies, and is its disk sound?",
                    path.display()
                )
            }
            Self::PlanInterrupted(_) | Self::LookInterrupted(_) => "run it again".to_owned(),
            Self::NoThread { .. } => {
                "end some of your processes, or raise the limit of their number (ulimit -u), then run it again"
                    .to_owned()
            }
            Self::NoSource(_) => "check the path".to_owned(),
            Self::NotAFile(_) | Self::NotADirectory(_) => {
                "name it as what it is: file or directory".to_owned()
            }
            Self::IntoItself { .. } => "choose a target outside of the source".to_owned(),
            Self::Host(_) | Self::Journal { .. } => return None,
        })
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let path = match &error {
            Error::Host(error) => error.path.clone(),
            Error::NoSource(path)
            | Error::NotAFile(path)
            | Error::NotADirectory(path)
            | Error::Locked(path)
            | Error::PlanInterrupted(path)
            | Error::LookInterrupted(path)
            | Error::IntoItself { target: path, .. }
            | Error::Journal { path, .. }
            | Error::NoThread { path, .. }
            | Error::Damaged { path, .. } => path.clone(),
        };
        Self { path, reason: error.to_string(), remedy: error.hint(), errno: error.errno() }
    }
}
