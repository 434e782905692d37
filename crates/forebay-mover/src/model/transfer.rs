//! A request to copy a source.

use std::path::PathBuf;

/// The kind of source that the user states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferKind {
    /// One file. If the target is a directory, the file keeps its own name there.
    File,
    /// One file, copied to exactly this name. The copy fails if the target is a directory.
    FileToName,
    /// A directory, whose contents become the contents of the target.
    Directory,
}

/// One source to copy to one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// Whether the source is a file or a directory.
    pub what: TransferKind,
    /// The path to copy from. If it is a symbolic link, Forebay follows it.
    pub source: PathBuf,
    /// The path to copy to. A trailing slash marks a directory.
    pub target: PathBuf,
}
