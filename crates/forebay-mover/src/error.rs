//! Why a plan or a run of a journal stops, with the remedy.
//! A file that a run cannot copy never stops it: the journal holds that failure.

use std::path::{Path, PathBuf};

use crate::model::failure::Failure;

/// Why Forebay cannot plan a transfer or use a journal.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error(transparent)]
    Host(#[from] forebay_host::Error),
    /// The source does not exist.
    #[error("the source {} does not exist", forebay_host::files::printable(.0))]
    NoSource(PathBuf),
    /// The request says `type=file`, but the source is not a file.
    #[error("the source {} is not a file", forebay_host::files::printable(.0))]
    NotAFile(PathBuf),
    /// The request says `type=directory`, but the source is not a directory.
    #[error("the source {} is not a directory", forebay_host::files::printable(.0))]
    NotADirectory(PathBuf),
    /// The source contains its own target, so the copy would never end.
    #[error(
        "the destination {} is in the source {}",
        forebay_host::files::printable(target),
        forebay_host::files::printable(source_directory)
    )]
    IntoItself {
        /// The directory to copy.
        source_directory: PathBuf,
        /// The requested destination.
        target: PathBuf,
    },
    /// The journal cannot be read or written.
    #[error("the journal {} cannot be used: {error}", forebay_host::files::printable(path))]
    Journal {
        /// The file of the journal.
        path: PathBuf,
        /// The error of SQLite.
        error: rusqlite::Error,
    },
    /// The file is damaged or not a journal.
    #[error("the journal {} is damaged: {what}", forebay_host::files::printable(path))]
    Damaged {
        /// The file of the journal.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Another process runs the journal.
    #[error("the journal {} is in hand: another process carries it out", forebay_host::files::printable(.0))]
    Locked(PathBuf),
    /// A thread of the staging panicked, and has printed why.
    #[error("a thread of the staging ended unexpectedly: this is a defect of Forebay")]
    Panicked,
    /// The scan of the sources was stopped.
    #[error("looking through the sources was interrupted")]
    PlanInterrupted(PathBuf),
    /// The check for copied files that no longer exist was stopped.
    #[error("looking whether all that has arrived is still there was interrupted")]
    RecheckInterrupted(PathBuf),
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
            Self::NoSource(_) => Some(libc::ENOENT),
            Self::NotAFile(_) | Self::IntoItself { .. } => Some(libc::EINVAL),
            Self::NotADirectory(_) => Some(libc::ENOTDIR),
            Self::Locked(_) => Some(libc::EBUSY),
            Self::Journal { .. } if self.is_journal_full() => Some(libc::ENOSPC),
            Self::PlanInterrupted(_) | Self::RecheckInterrupted(_) => Some(libc::ECANCELED),
            Self::Journal { .. } | Self::Damaged { .. } | Self::Panicked => None,
        }
    }

    /// What the user can do about it, if known.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Damaged { path, .. } => format!(
                "files at the destinations are complete; remove {} and stage again: complete files \
                 are not copied again",
                forebay_host::files::printable(path)
            ),
            Self::Locked(_) => "wait for it, or cancel it".to_owned(),
            Self::Journal { .. } if self.is_journal_full() => {
                "free space in the directory of the journal, then repeat the command".to_owned()
            }
            Self::Journal { path, error }
                if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ReadOnly) =>
            {
                format!(
                    "get write permission for {} and for the files of the same name with an ending",
                    forebay_host::files::printable(path)
                )
            }
            // SQLite reports this also if its shared memory file finds no room.
            Self::Journal { path, error }
                if error.sqlite_error_code() == Some(rusqlite::ErrorCode::SystemIoFailure) =>
            {
                format!(
                    "is there free space for {}, and is its disk sound?",
                    forebay_host::files::printable(path)
                )
            }
            Self::PlanInterrupted(_) | Self::RecheckInterrupted(_) => "run it again".to_owned(),
            Self::Panicked => "run it again, and report what it printed".to_owned(),
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
            | Error::RecheckInterrupted(path)
            | Error::IntoItself { target: path, .. }
            | Error::Journal { path, .. }
            | Error::Damaged { path, .. } => path.clone(),
            Error::Panicked => PathBuf::new(),
        };
        Self { path, reason: error.to_string(), remedy: error.hint(), errno: error.errno() }
    }
}
