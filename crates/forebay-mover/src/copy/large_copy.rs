//! The state of one large file that several threads copy.
//! Keeps the first failure only. Never copies, and never writes to the journal: `large_files.rs` does both.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_host::files::{Direct, Status};
use parking_lot::{Mutex, MutexGuard};

use crate::copy::blocks::{Ends, is_sparse};
use crate::error::Error;

use crate::model::item::Item;
use crate::model::reason::Reason;

/// A large file in progress.
pub(crate) struct LargeCopy {
    pub(crate) item: Item,
    pub(crate) tries: u32,
    pub(crate) source: File,
    pub(crate) status: Status,
    pub(crate) target: Direct,
    /// The file opened for reading, once it is complete.
    pub(crate) back: OnceLock<Direct>,
    pub(crate) temporary: PathBuf,
    pub(crate) pieces: u64,
    pub(crate) pieces_left: AtomicU64,
    /// Checksums of the copied pieces.
    pub(crate) checksums: Mutex<BTreeMap<u64, u64>>,
    pub(crate) failure: Mutex<Option<Reason>>,
}

impl LargeCopy {
    pub(crate) fn ends(&self) -> Ends<'_> {
        Ends {
            source: &self.source,
            target: &self.target,
            item: &self.item,
            is_sparse: is_sparse(&self.status),
        }
    }

    pub(crate) fn checksums(&self) -> MutexGuard<'_, BTreeMap<u64, u64>> {
        self.checksums.lock()
    }

    fn failure(&self) -> MutexGuard<'_, Option<Reason>> {
        self.failure.lock()
    }

    /// Has a piece failed? Then the others are skipped.
    pub(crate) fn is_lost(&self) -> bool {
        self.failure().is_some()
    }

    /// Records the result of a piece. Returns whether it was the last one.
    pub(crate) fn finish_piece(&self, done: Result<(), Reason>) -> bool {
        if let Err(reason) = done {
            self.failure().get_or_insert(reason);
        }
        self.pieces_left.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Returns the error of a failed piece, if any.
    pub(crate) fn take_failure(&self) -> Result<(), LargeCopyError> {
        self.failure().take().map_or(Ok(()), |reason| Err(reason.into()))
    }
}

/// Why a large file cannot be copied.
pub(crate) enum LargeCopyError {
    Reason(Reason),
    Journal(Error),
}

impl From<Reason> for LargeCopyError {
    fn from(reason: Reason) -> Self {
        Self::Reason(reason)
    }
}

impl From<forebay_host::Error> for LargeCopyError {
    fn from(error: forebay_host::Error) -> Self {
        Self::Reason(error.into())
    }
}

impl From<Error> for LargeCopyError {
    fn from(error: Error) -> Self {
        Self::Journal(error)
    }
}
