//! Large files, piece by piece by several threads. Pieces that are copied are in the journal, so that a
//! staging that was killed does not copy them again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use forebay_host::files::{self, Status};
use xxhash_rust::xxh3::Xxh3;

use crate::Error;
use crate::batch::{OURS_ALONE, Syncing, check_source};
use crate::content::{Ends, RETRIES, differs, is_sparse};
use crate::engine::{Did, Run, Task, Verify};
use crate::item::{Item, Reason, is_same};
use crate::journal::State;
use crate::parts::temporary;
use crate::steps::Step;

/// A file between its first and its last byte.
pub(crate) struct Copying {
    item: Item,
    tries: u32,
    source: File,
    status: Status,
    target: File,
    temporary: PathBuf,
    pieces: u64,
    pieces_left: AtomicU64,
    /// Checksum of each piece that is there.
    checksums: Mutex<BTreeMap<u64, u64>>,
    failure: Mutex<Option<Reason>>,
}

impl Copying {
    fn ends(&self) -> Ends<'_> {
        Ends {
            source: &self.source,
            target: &self.target,
            item: &self.item,
            is_sparse: is_sparse(&self.status),
        }
    }
}

impl Run<'_> {
    /// Begins a large file: its pieces go to whoever is free.
    ///
    /// # Errors
    /// If the journal cannot be used.
    pub(crate) fn begin(&self, item: &Item, tries: u32, block: &mut [u8]) -> Result<(), Error> {
        match self.open(item, tries, block) {
            Ok(Some(copying)) => self.hand_out(copying, block),
            Ok(None) => {
                let placed = Step {
                    id: item.id,
                    state: State::Placed,
                    checksum: None,
                };
                self.journal.done(&[placed])?;
                self.has_arrived(item.size_bytes, true);
                Ok(())
            }
            Err(Refused::Reason(reason)) => self.has_failed(item, reason),
            Err(Refused::Journal(error)) => Err(error),
        }
    }

    fn hand_out(&self, mut copying: Copying, block: &mut [u8]) -> Result<(), Error> {
        let there: BTreeSet<u64> = {
            let checksums = copying
                .checksums
                .get_mut()
                .unwrap_or_else(PoisonError::into_inner);
            checksums.keys().copied().collect()
        };
        let missing: Vec<_> = (0..copying.pieces)
            .filter(|piece| !there.contains(piece))
            .collect();
        for piece in &there {
            let range = self.range(&copying, *piece);
            (self.on)(Did::Passed(range.end - range.start));
        }
        copying.pieces_left = AtomicU64::new(missing.len() as u64);
        let copying = Arc::new(copying);
        let Some((first, rest)) = missing.split_first() else {
            return self.finish(&copying, block);
        };
        self.add_tasks(
            rest.iter()
                .map(|piece| Task::Piece(Arc::clone(&copying), *piece)),
        );
        self.piece(&copying, *first, block)
    }

    /// None if it stands at its place already.
    fn open(&self, item: &Item, tries: u32, block: &mut [u8]) -> Result<Option<Copying>, Refused> {
        self.check_stopped()?;
        let source = files::open_source(&item.source, item.is_named)?;
        let status = files::status_of(&source, &item.source)?;
        check_source(&source, &status)?;
        if !self.fresh.contains(&item.directory) && self.is_there(item, &source, &status, block)? {
            if self.options.durable {
                files::named(
                    files::open_source(&item.target, false)?.sync_all(),
                    "sync",
                    &item.target,
                )?;
                Syncing::of(true, 1).finish(std::iter::once(item.target.as_path()))?;
            }
            (self.on)(Did::Passed(status.size_bytes));
            return Ok(None);
        }
        let temporary = temporary(&item.target, &self.options.tag, item.id);
        let mut checksums: BTreeMap<_, _> =
            self.journal.pieces(item.id, &status)?.into_iter().collect();
        let left = (!checksums.is_empty()).then(|| files::open_to_go_on(&temporary).ok());
        let left = left.flatten().filter(|file| {
            files::status_of(file, &temporary)
                .is_ok_and(|part| part.size_bytes == status.size_bytes)
        });
        let target = match left {
            Some(target) => target,
            None => {
                checksums.clear();
                self.journal.forget_pieces(item.id)?;
                let target = self.make_part(&temporary, OURS_ALONE)?;
                let sized = files::named(
                    target.set_len(status.size_bytes),
                    "set the size of",
                    &item.target,
                );
                if let Err(error) = sized {
                    self.take_away(&temporary);
                    return Err(error.into());
                }
                target
            }
        };
        Ok(Some(Copying {
            item: item.clone(),
            tries,
            source,
            pieces: status.size_bytes.div_ceil(self.options.piece_bytes.max(1)),
            status,
            target,
            temporary,
            pieces_left: AtomicU64::new(0),
            checksums: Mutex::new(checksums),
            failure: Mutex::new(None),
        }))
    }

    fn range(&self, copying: &Copying, piece: u64) -> std::ops::Range<u64> {
        let from = piece * self.options.piece_bytes;
        from..copying
            .status
            .size_bytes
            .min(from + self.options.piece_bytes)
    }

    /// Copies one piece; whoever copies the last one puts the file in its place.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub(crate) fn piece(
        &self,
        copying: &Copying,
        piece: u64,
        block: &mut [u8],
    ) -> Result<(), Error> {
        match self.copy_range(&copying.ends(), self.range(copying, piece), block) {
            Ok(checksum) => {
                self.journal
                    .piece_is_copied(copying.item.id, piece, checksum)?;
                let mut checksums = copying
                    .checksums
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                checksums.insert(piece, checksum);
            }
            Err(reason) => {
                let mut failure = copying
                    .failure
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                failure.get_or_insert(reason);
            }
        }
        if copying.pieces_left.fetch_sub(1, Ordering::AcqRel) == 1 {
            return self.finish(copying, block);
        }
        Ok(())
    }

    /// After the last piece: puts the file in its place, or takes the half of it away.
    fn finish(&self, copying: &Copying, block: &mut [u8]) -> Result<(), Error> {
        let item = &copying.item;
        let failure = copying
            .failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let whole = match failure {
            Some(reason) => Err(Refused::Reason(reason)),
            None => self.make_whole(copying),
        };
        let placed = whole.and_then(|checksum| {
            let copied = |state| Step {
                id: item.id,
                state,
                checksum,
            };
            self.journal.done(&[copied(State::Copied)])?;
            if self.options.verify == Verify::End {
                self.reads_back_whole(copying, block)?;
                self.journal.done(&[copied(State::Verified)])?;
            }
            self.put_in_place(&copying.temporary, &item.target)?;
            Syncing::of(self.options.durable, 1).finish(std::iter::once(item.target.as_path()))?;
            self.journal.done(&[copied(State::Placed)])?;
            self.journal.forget_pieces(item.id)?;
            Ok(())
        });
        match placed {
            Ok(()) => {
                self.has_arrived(copying.status.size_bytes, false);
                Ok(())
            }
            Err(Refused::Journal(error)) => Err(error),
            // Its pieces are worth to be kept, unless we are told to leave nothing: that is done at the end.
            Err(Refused::Reason(reason)) if reason.is_stop => Ok(()),
            Err(Refused::Reason(reason)) => {
                self.take_away(&copying.temporary);
                self.journal.forget_pieces(item.id)?;
                if reason.is_change && copying.tries < RETRIES {
                    self.add_tasks(std::iter::once(Task::Begin(
                        item.clone(),
                        copying.tries + 1,
                    )));
                    return Ok(());
                }
                self.has_failed(item, reason)
            }
        }
    }

    /// Attributes and sync. Returns the checksum of the whole.
    fn make_whole(&self, copying: &Copying) -> Result<Option<u64>, Refused> {
        let item = &copying.item;
        let now = files::status_of(&copying.source, &item.source)?;
        if !is_same(&now, &copying.status) {
            return Err(Reason::changed("it was changed while it was copied, each time").into());
        }
        let paths = (item.source.as_path(), item.target.as_path());
        self.give_attributes(&copying.source, &copying.target, paths, &copying.status)?;
        if self.options.durable {
            files::named(copying.target.sync_all(), "sync", &item.target)?;
        }
        let checksums = copying
            .checksums
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut whole = Xxh3::new();
        for checksum in checksums.values() {
            whole.update(&checksum.to_le_bytes());
        }
        Ok((self.options.verify != Verify::Off).then(|| whole.digest()))
    }

    fn reads_back_whole(&self, copying: &Copying, block: &mut [u8]) -> Result<(), Reason> {
        let target = files::open_source(&copying.temporary, false)?;
        files::forget(&target, &copying.temporary)?;
        let ends = Ends {
            target: &target,
            ..copying.ends()
        };
        let checksums = copying
            .checksums
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for (piece, checksum) in checksums.iter() {
            if self.checksum_of(&ends, self.range(copying, *piece), block)? != *checksum {
                return Err(differs());
            }
        }
        Ok(())
    }
}

/// Why a file does not go on.
enum Refused {
    Reason(Reason),
    Journal(Error),
}

impl From<Reason> for Refused {
    fn from(reason: Reason) -> Self {
        Self::Reason(reason)
    }
}

impl From<forebay_host::Error> for Refused {
    fn from(error: forebay_host::Error) -> Self {
        Self::Reason(error.into())
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::Journal(error)
    }
}
