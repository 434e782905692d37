//! Errors of drains and of commands on close, with their remedies.

/// Why Forebay drains no files or runs no command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error(transparent)]
    Host(#[from] forebay_host::Error),
    /// The job's record cannot be written.
    #[error(transparent)]
    Record(#[from] forebay_record::Error),
    /// The request cannot be carried out.
    #[error("{message}")]
    Request {
        /// What is wrong.
        message: String,
        /// What to do.
        hint: &'static str,
    },
    /// No job here drains files.
    #[error("{message}")]
    NoDrain {
        /// Why.
        message: &'static str,
        /// What to do.
        hint: &'static str,
    },
}

impl Error {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Host(error) => error.hint().map(str::to_owned),
            Self::Record(error) => error.hint(),
            Self::Request { hint, .. } | Self::NoDrain { hint, .. } => Some((*hint).to_owned()),
        }
    }
}
