//! Why a stage-in cannot be planned, with the remedy.

use std::path::PathBuf;

use forebay_directive::Position;

/// Why a stage-in cannot be planned.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The journal cannot be used, or planning was interrupted.
    #[error(transparent)]
    Mover(#[from] forebay_mover::Error),
    /// A stage-in names a source that cannot be staged.
    #[error("{}: {}: {command}: {message}", script.display(), position.on_line())]
    Source {
        /// The script.
        script: PathBuf,
        /// The position of the directive.
        position: Position,
        /// The word of the directive.
        command: &'static str,
        /// What is wrong with the source.
        message: String,
    },
    /// A destination cannot be written, or belongs to another line.
    #[error("{}: {}: {command}: {message}", script.display(), position.on_line())]
    Destination {
        /// The script.
        script: PathBuf,
        /// The position of the directive.
        position: Position,
        /// The word of the directive.
        command: &'static str,
        /// What is wrong with the destination.
        message: String,
    },
}

impl Error {
    /// The remedy.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Mover(error) => error.hint(),
            Self::Destination { .. } => {
                Some("the job was not started; correct the destination= of that line".to_owned())
            }
            Self::Source { .. } => {
                Some("the job was not started; correct the source= of that line".to_owned())
            }
        }
    }
}
