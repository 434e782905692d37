//! The state of one large file that several threads copy.

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

/// A file between its first and its last byte.
pub(crate) struct LargeCopy {
    pub(crate) item: Item,
    pub(crate) tries: u32,
    pub(crate) source: File,
    pub(crate) status: Status,
    pub(crate) target: Direct,
    /// The same to be read again, once it is whole.
    pub(crate) back: OnceLock<Direct>,
    pub(crate) temporary: PathBuf,
    pub(crate) pieces: u64,
    pub(crate) pieces_left: AtomicU64,
    /// Checksum of each piece that is there.
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

    /// A piece of it failed: the others need not be done.
    pub(crate) fn is_lost(&self) -> bool {
        self.failure().is_some()
    }

    /// What became of a piece. Was it the last one?
    pub(crate) fn finish_piece(&self, done: Result<(), Reason>) -> bool {
        if let Err(reason) = done {
            self.failure().get_or_insert(reason);
        }
        self.pieces_left.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// All its pieces are done, or one has failed.
    pub(crate) fn all_done(&self) -> Result<(), LargeCopyError> {
        self.failure().take().map_or(Ok(()), |reason| Err(reason.into()))
    }
}

/// Why a file does not go on.
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
