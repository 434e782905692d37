//! How much of a directory is to be copied, and whether one batch takes it.

/// What of a directory is to be moved.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LeafSize {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) largest_bytes: u64,
    /// How often the journal comes to it, by the numbers of its entries.
    pub(crate) times: u64,
}

impl LeafSize {
    pub(crate) fn most(files: u64, bytes: u64, largest_bytes: u64) -> Self {
        Self { files, bytes, largest_bytes, times: 1 }
    }

    /// Does it all go in one batch, and is it worth it?
    pub(crate) fn fits(&self, most: &Self) -> bool {
        (GROUP_SYNC_MIN as u64..=most.files).contains(&self.files)
            && self.bytes <= most.bytes
            && self.largest_bytes <= most.largest_bytes
            && self.times == most.times
    }
}

/// Fewer files than this are synced one by one: what others have written on that file system need not be
/// waited for.
pub(crate) const GROUP_SYNC_MIN: usize = 9;
