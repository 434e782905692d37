//! Blocks of a file, and its open source and destination.

use std::fs::File;
use std::os::unix::fs::FileExt;

use forebay_host::files::Status;

use crate::model::item::Item;
use crate::model::reason::Reason;

/// Bytes of one read and one write, a size that suits parallel file systems. Pieces begin at
/// multiples of it, which keeps writes aligned to stripes.
pub(crate) const BLOCK_BYTES: usize = 4 << 20;

/// How often Forebay copies a changed source again, if any version is acceptable.
pub(crate) const RETRIES: u32 = 3;

/// An open source and an open destination.
pub(crate) struct Ends<'a> {
    pub(crate) source: &'a File,
    /// Written or read block by block.
    pub(crate) target: &'a dyn FileExt,
    pub(crate) item: &'a Item,
    pub(crate) is_sparse: bool,
}

/// Can the file have holes?
pub(crate) fn is_sparse(status: &Status) -> bool {
    status.allocated_bytes < status.size_bytes
}

/// The content read back differs from the content written.
pub(crate) fn differs() -> Reason {
    Reason::new(
        "what was written reads back differently",
        "the target's file system or its machine is at fault; stage it again, there or elsewhere",
    )
}
