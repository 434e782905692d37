//! Source files with a failed write: what they hold may have holes.

use std::collections::HashSet;
use std::path::PathBuf;

use forebay_host::files::{Kind, Status};
use schemars::JsonSchema;
use serde::Serialize;

/// Added to the name of such a file where its destination holds another file, which stays.
pub const FAILED_WRITE_END: &str = ".write-failed";

/// Which source files had a failed write.
#[derive(Debug, Clone, Default)]
pub struct FailedWrites {
    /// Device and inode of each.
    pub inodes: HashSet<(u64, u64)>,
    /// Those that were emptied since; what was written later did not fail.
    pub emptied_inodes: HashSet<(u64, u64)>,
    /// Other files modified at this time or later may have one, too: their file system was full. In milliseconds since 1970.
    pub modified_since_unix_ms: Option<u64>,
}

impl FailedWrites {
    /// Is there no such file?
    pub fn is_empty(&self) -> bool {
        self.inodes.is_empty() && self.modified_since_unix_ms.is_none()
    }

    /// Is this file one of them?
    pub fn has(&self, status: &Status) -> bool {
        let (seconds, nanoseconds) = status.modified;
        let modified_ms = seconds.saturating_mul(1000).saturating_add(nanoseconds / 1_000_000);
        let since = self.modified_since_unix_ms.and_then(|since| i64::try_from(since).ok());
        let inode = (status.device, status.inode);
        status.kind == Kind::File
            && (self.inodes.contains(&inode)
                || !self.emptied_inodes.contains(&inode)
                    && since.is_some_and(|since| modified_ms >= since))
    }
}

/// A planned file that may be incomplete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct IncompleteFile {
    /// The file in the source.
    #[serde(serialize_with = "forebay_host::files::lossy_path")]
    #[schemars(with = "PathBuf")]
    pub source: PathBuf,
    /// Where it goes.
    #[serde(serialize_with = "forebay_host::files::lossy_path")]
    #[schemars(with = "PathBuf")]
    pub destination: PathBuf,
    /// A write of it is known to have failed; else its file system was full.
    pub is_recorded: bool,
    /// It is staged out next to the existing file, under a name with [`FAILED_WRITE_END`].
    pub is_renamed: bool,
}
