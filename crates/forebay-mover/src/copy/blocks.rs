//! Blocks of a file, and its open source and target.

use std::fs::File;
use std::os::unix::fs::FileExt;

use forebay_host::files::Status;

use crate::model::item::Item;
use crate::model::reason::Reason;

/// Bytes of one read and one write: what parallel file systems like to get at once. Pieces begin at
/// multiples of it, so that writes are aligned to stripes whose size divides it or is a multiple of it.
pub(crate) const BLOCK_BYTES: usize = 4 << 20;

/// How often a source that changed is copied again, if it is the version that is wanted still.
pub(crate) const RETRIES: u32 = 3;

/// A source and a target that are open.
pub(crate) struct Ends<'a> {
    pub(crate) source: &'a File,
    /// Written or read by the block.
    pub(crate) target: &'a dyn FileExt,
    pub(crate) item: &'a Item,
    pub(crate) is_sparse: bool,
}

/// Has it holes, or might have?
pub(crate) fn is_sparse(status: &Status) -> bool {
    status.allocated_bytes < status.size_bytes
}

/// What was read again is not what was written.
pub(crate) fn differs() -> Reason {
    Reason::new(
        "what was written reads back differently",
        "the target's file system or its machine is at fault; stage it again, there or elsewhere",
    )
}
