//! Tasks that wait for a thread.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::copy::large_copy::LargeCopy;
use crate::model::item::Item;

/// Limits of a batch of small files, which Forebay syncs together.
pub(crate) const BATCH_FILES_MIN: u64 = 32;

pub(crate) const BATCH_FILES_MAX: u64 = 2048;

pub(crate) const BATCH_BYTES_MAX: u64 = 8 << 20;

pub(crate) enum Task {
    /// Small files and links.
    Batch(Vec<Item>),
    /// A large file, and the number of earlier tries.
    Begin(Item, u32),
    /// A piece of a large file to copy.
    Piece(Arc<LargeCopy>, u64),
    /// A piece of a complete file to read back.
    Check(Arc<LargeCopy>, u64),
}

impl Task {
    pub(crate) fn is_large(&self) -> bool {
        !matches!(self, Self::Batch(_))
    }
}

#[derive(Default)]
pub(crate) struct Queue {
    pub(crate) tasks: VecDeque<Task>,
    /// Workers with a task. They can add tasks.
    pub(crate) busy: usize,
    /// Workers with a task of a large file.
    pub(crate) on_large: usize,
    /// Number of the last entry taken from the journal.
    pub(crate) last: i64,
    pub(crate) is_exhausted: bool,
}
