//! What a user asks to be copied.

use std::path::PathBuf;

/// What the user says the source is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferKind {
    /// One file. A target that is a directory receives it under its own name.
    File,
    /// One file, under the target's name, even if a directory has that name: then it fails.
    FileToName,
    /// The contents of a directory, which become the contents of the target.
    Directory,
}

/// One source to be moved to one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// File or directory.
    pub what: TransferKind,
    /// From where. A link named here is followed.
    pub source: PathBuf,
    /// To where. A trailing slash says that it is a directory.
    pub target: PathBuf,
}
