//! How much of a directory is to be copied, and whether it fits into one batch.

/// Number and size of the files to copy in a directory.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LeafSize {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) largest_bytes: u64,
    /// How many separate runs of entries it has in the journal, in the order of their numbers.
    pub(crate) times: u64,
}

impl LeafSize {
    pub(crate) fn most(files: u64, bytes: u64, largest_bytes: u64) -> Self {
        Self { files, bytes, largest_bytes, times: 1 }
    }

    /// Do all files fit into one batch, and are there enough of them?
    pub(crate) fn fits(&self, most: &Self) -> bool {
        (GROUP_SYNC_MIN as u64..=most.files).contains(&self.files)
            && self.bytes <= most.bytes
            && self.largest_bytes <= most.largest_bytes
            && self.times == most.times
    }
}

/// Smaller batches sync each file. A sync of the whole file system would also wait for data of
/// other processes.
pub(crate) const GROUP_SYNC_MIN: usize = 9;
