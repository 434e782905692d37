//! Errors that stop a whole staging.

use std::path::{Path, PathBuf};

use crate::model::failure::Failure;

/// Why Forebay cannot plan a transfer or use a journal.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error(transparent)]
    Host(#[from] forebay_host::Error),
    /// The source does not exist.
    #[error("the source {} does not exist", .0.display())]
    NoSource(PathBuf),
    /// The request says `type=file`, but the source is not a file.
    #[error("the source {} is not a file", .0.display())]
    NotAFile(PathBuf),
    /// The request says `type=directory`, but the source is not a directory.
    #[error("the source {} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// The source contains its own target, so the copy would never end.
    #[error("the target {} lies in the source {}", target.display(), source_directory.display())]
    IntoItself {
        /// The directory to copy.
        source_directory: PathBuf,
        /// The requested destination.
        target: PathBuf,
    },
    /// The journal cannot be read or written.
    #[error("the journal {} cannot be used: {error}", path.display())]
    Journal {
        /// The file of the journal.
        path: PathBuf,
        /// The error of SQLite.
        error: rusqlite::Error,
    },
    /// The file is damaged or not a journal.
    #[error("the journal {} is damaged: {what}", path.display())]
    Damaged {
        /// The file of the journal.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Another process runs the journal.
    #[error("the journal {} is in hand: another process carries it out", .0.display())]
    Locked(PathBuf),
    /// The system, or a limit of the user, allows no more threads.
    #[error("no thread can be started to stage {}: {error}", path.display())]
    NoThread {
        /// The source to scan, or the journal to run.
        path: PathBuf,
        /// The error of the system.
        error: std::io::Error,
    },
    /// The scan of the sources was stopped.
    #[error("looking through the sources was interrupted")]
    PlanInterrupted(PathBuf),
    /// The check for copied files that no longer exist was stopped.
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

    /// Is the file system of the journal full?
    pub(crate) fn is_journal_full(&self) -> bool {
        let Self::Journal { error, .. } = self else {
            return false;
        };
        error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull)
    }

    /// The error number, see errno(3), if there is one.
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

    /// What the user can do about it, if known.
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
            // SQLite reports this also if its shared memory file finds no room.
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
