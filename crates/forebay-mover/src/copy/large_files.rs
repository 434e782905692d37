//! Large files, which several threads copy in pieces. The journal records the copied pieces, so
//! that a restart does not copy them again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use forebay_host::files;
use forebay_host::files::{Direct, Kind, Status};
use forebay_host::users;
use parking_lot::Mutex;
use xxhash_rust::xxh3::Xxh3;

use crate::copy::blocks::{RETRIES, differs};
use crate::copy::context::{CopyContext, CopyEvent};
use crate::copy::durability::Syncing;
use crate::copy::large_copy::{LargeCopy, LargeCopyError};
use crate::copy::target::OWNER_ONLY_MODE;
use crate::copy::task_queue::Task;
use crate::error::Error;
use crate::model::item::{Item, Step};
use crate::model::options::Verify;
use crate::model::partial_names::temporary;
use crate::model::reason::Reason;
use crate::model::state::State;
use crate::model::version::is_untouched;

impl CopyContext<'_> {
    /// Begins a large file: idle threads take its pieces.
    pub(crate) fn begin(&self, item: &Item, tries: u32, block: &mut [u8]) -> Result<(), Error> {
        match self.open(item, tries, block) {
            Ok(Some(copying)) => self.queue_pieces(copying, block),
            Ok(None) => {
                self.journal.apply_updates(&[Step::to(item, State::Placed)])?;
                self.record_delivered(item.size_bytes, true);
                Ok(())
            }
            Err(LargeCopyError::Reason(reason)) => self.record_failed(item, reason),
            Err(LargeCopyError::Journal(error)) => Err(error),
        }
    }

    fn queue_pieces(&self, mut copying: LargeCopy, block: &mut [u8]) -> Result<(), Error> {
        let there: BTreeSet<u64> = copying.checksums().keys().copied().collect();
        let missing: Vec<_> = (0..copying.pieces).filter(|piece| !there.contains(piece)).collect();
        for piece in &there {
            let range = self.range(&copying, *piece);
            (self.on)(CopyEvent::Skipped(range.end - range.start));
        }
        copying.pieces_left = AtomicU64::new(missing.len() as u64);
        let copying = Arc::new(copying);
        let Some((first, rest)) = missing.split_first() else {
            return self.complete_file(&copying, block);
        };
        self.add_tasks(rest.iter().map(|piece| Task::Piece(Arc::clone(&copying), *piece)));
        self.piece(&copying, *first, block)
    }

    /// Opens source and partial file. Returns `None` if the destination is unchanged.
    pub(crate) fn open(
        &self,
        item: &Item,
        tries: u32,
        block: &mut [u8],
    ) -> Result<Option<LargeCopy>, LargeCopyError> {
        self.check_stopped()?;
        self.check_directory(item)?;
        let source = files::open_source(&item.source, item.is_named)?;
        let status = files::status_of(&source, &item.source)?;
        self.check_source(item, &source, &status)?;
        if !self.directories.fresh.contains(&item.directory)
            && self.repair_if_unchanged(item, &source, &status, block)?
        {
            if self.options.syncs() {
                files::with_path(
                    files::open_source(&item.target, false)?.sync_all(),
                    "sync",
                    &item.target,
                )?;
                Syncing::of(true, 1).finish(std::iter::once(item.target.as_path()))?;
            }
            self.drop_part(item);
            (self.on)(CopyEvent::Skipped(status.size_bytes));
            return Ok(None);
        }
        self.check_may_replace(item)?;
        let temporary = temporary(&item.target, &self.options.tag, item.id);
        let mut checksums: BTreeMap<_, _> =
            self.journal.pieces(item.id, &status)?.into_iter().collect();
        let is_in_memory = self.memory.has(&item.source, &status);
        let left =
            (!checksums.is_empty() && !is_in_memory).then(|| open_part(&temporary, &status).ok());
        let left = left.flatten().filter(|file| {
            files::status_of(file, &temporary)
                .is_ok_and(|part| part.size_bytes == status.size_bytes)
        });
        let target = match left {
            Some(target) => target,
            None => {
                checksums.clear();
                self.make_sized_part(item, &temporary, status.size_bytes)?
            }
        };
        self.check_made(item, &temporary, &target)?;
        Ok(Some(LargeCopy {
            item: item.clone(),
            tries,
            source,
            // This node reads staged-in files at once, from memory.
            target: match self.options.past_page_cache {
                true => Direct::to_write(target),
                false => Direct::buffered(target),
            },
            back: OnceLock::new(),
            pieces: status.size_bytes.div_ceil(self.options.piece_bytes.max(1)),
            status,
            temporary,
            pieces_left: AtomicU64::new(0),
            checksums: Mutex::new(checksums),
            failure: Mutex::new(None),
        }))
    }

    pub(crate) fn range(&self, copying: &LargeCopy, piece: u64) -> std::ops::Range<u64> {
        let from = piece * self.options.piece_bytes;
        from..copying.status.size_bytes.min(from + self.options.piece_bytes)
    }

    /// Copies one piece. The thread that copies the last one completes the file.
    pub(crate) fn piece(
        &self,
        copying: &Arc<LargeCopy>,
        piece: u64,
        block: &mut [u8],
    ) -> Result<(), Error> {
        let copied = match copying.is_lost() {
            true => Ok(None), // another piece has failed
            false => self.copy_range(&copying.ends(), self.range(copying, piece), block).map(Some),
        };
        match copied {
            Ok(Some(checksum)) => self.piece_is_copied(copying, piece, checksum, block),
            Ok(None) => self.finish_piece(copying, Ok(()), block),
            Err(reason) => self.finish_piece(copying, Err(reason), block),
        }
    }

    /// Records a copied piece.
    pub(crate) fn piece_is_copied(
        &self,
        copying: &Arc<LargeCopy>,
        piece: u64,
        checksum: u64,
        block: &mut [u8],
    ) -> Result<(), Error> {
        self.journal.piece_is_copied(copying.item.id, piece, checksum)?;
        copying.checksums().insert(piece, checksum);
        self.finish_piece(copying, Ok(()), block)
    }

    fn finish_piece(
        &self,
        copying: &Arc<LargeCopy>,
        copied: Result<(), Reason>,
        block: &mut [u8],
    ) -> Result<(), Error> {
        if copying.finish_piece(copied) {
            return self.complete_file(copying, block);
        }
        Ok(())
    }

    /// Completes the file after its last piece, and starts to read it back if requested.
    fn complete_file(&self, copying: &Arc<LargeCopy>, block: &mut [u8]) -> Result<(), Error> {
        let whole = copying.take_failure().and_then(|()| self.make_whole(copying));
        let back = match (whole, self.options.verify) {
            (Ok(()), Verify::End) => self.open_back(copying),
            (whole, _) => return self.finish(copying, whole),
        };
        if back.is_err() || copying.pieces == 0 {
            return self.finish(copying, back);
        }
        copying.pieces_left.store(copying.pieces, Ordering::Release);
        self.add_tasks((1..copying.pieces).map(|piece| Task::Check(Arc::clone(copying), piece)));
        self.check(copying, 0, block)
    }

    /// Reads one piece back. The thread that reads the last one renames the file.
    pub(crate) fn check(
        &self,
        copying: &LargeCopy,
        piece: u64,
        block: &mut [u8],
    ) -> Result<(), Error> {
        let checked = match copying.is_lost() {
            true => Ok(()),
            false => self.reads_back_piece(copying, piece, block),
        };
        if copying.finish_piece(checked) {
            return self.finish(copying, copying.take_failure());
        }
        Ok(())
    }

    /// Renames a complete file, or removes an incomplete one.
    pub(crate) fn finish(
        &self,
        copying: &LargeCopy,
        whole: Result<(), LargeCopyError>,
    ) -> Result<(), Error> {
        let item = &copying.item;
        let placed = whole.and_then(|()| {
            if self.options.verify == Verify::End {
                self.journal.apply_updates(&[Step::to(item, State::Verified)])?;
            }
            self.put_in_place(&copying.temporary, item)?;
            Syncing::of(self.options.syncs(), 1).finish(std::iter::once(item.target.as_path()))?;
            self.journal.apply_updates(&[Step::to(item, State::Placed)])?;
            self.journal.forget_pieces(item.id)?;
            Ok(())
        });
        match placed {
            Ok(()) => {
                self.record_delivered(copying.status.size_bytes, false);
                Ok(())
            }
            Err(LargeCopyError::Journal(error)) => Err(error),
            // Keep its pieces; `end` removes them if the run stops before all files are copied.
            Err(LargeCopyError::Reason(reason)) if reason.is_stop => Ok(()),
            Err(LargeCopyError::Reason(reason)) => {
                self.remove_best_effort(&copying.temporary);
                self.journal.forget_pieces(item.id)?;
                if reason.is_change && copying.tries < RETRIES {
                    self.add_tasks(std::iter::once(Task::Begin(item.clone(), copying.tries + 1)));
                    return Ok(());
                }
                self.record_failed(item, reason)
            }
        }
    }

    /// Sets the attributes, syncs the file, and records it as copied.
    fn make_whole(&self, copying: &LargeCopy) -> Result<(), LargeCopyError> {
        let item = &copying.item;
        let now = files::status_of(&copying.source, &item.source)?;
        if !is_untouched(&now, &copying.status) {
            return Err(Reason::changed("it was changed while it was copied, each time").into());
        }
        let paths = (item.source.as_path(), item.target.as_path());
        let target = copying.target.plain();
        self.copy_metadata(&copying.source, target, paths, &copying.status)?;
        if self.options.syncs() {
            files::with_path(target.sync_all(), "sync", &item.target)?;
        }
        let again = files::with_path(target.try_clone(), "open again", &item.target)?;
        files::close(again, &item.target)?;
        let mut whole = Xxh3::new();
        for checksum in copying.checksums().values() {
            whole.update(&checksum.to_le_bytes());
        }
        let checksum = (self.options.verify != Verify::Off).then(|| whole.digest());
        self.journal.apply_updates(&[Step { checksum, ..Step::to(item, State::Copied) }])?;
        Ok(())
    }

    /// Creates the partial file in its full size, without a piece.
    fn make_sized_part(
        &self,
        item: &Item,
        temporary: &Path,
        size_bytes: u64,
    ) -> Result<File, LargeCopyError> {
        self.journal.forget_pieces(item.id)?;
        let target = self.make_striped_part(item, temporary, size_bytes)?;
        let sized = files::with_path(target.set_len(size_bytes), "set the size of", &item.target);
        if let Err(error) = sized {
            self.remove_best_effort(temporary);
            return Err(error.into());
        }
        Ok(target)
    }

    /// Drops the page cache, so that the data comes from the device.
    fn open_back(&self, copying: &LargeCopy) -> Result<(), LargeCopyError> {
        let plain = files::open_source(&copying.temporary, false)?;
        files::drop_page_cache(&plain, &copying.temporary)?;
        let back = match self.options.past_page_cache {
            true => Direct::to_read(plain),
            false => Direct::buffered(plain),
        };
        copying.back.get_or_init(|| back);
        Ok(())
    }

    fn reads_back_piece(
        &self,
        copying: &LargeCopy,
        piece: u64,
        block: &mut [u8],
    ) -> Result<(), Reason> {
        let wanted = copying.checksums().get(&piece).copied();
        let mut ends = copying.ends();
        if let Some(back) = copying.back.get() {
            ends.target = back;
        }
        let found = self.checksum_of(&ends, self.range(copying, piece), block)?;
        if found.is_some() && found == wanted {
            return Ok(());
        }
        Err(differs())
    }
}

/// Opens a leftover partial file. It can have the mode of its source, which may deny writing.
fn open_part(temporary: &Path, source: &Status) -> Result<File, Reason> {
    match open_own_part(temporary, source) {
        Err(reason) if reason.errno == Some(libc::EACCES) => {
            // Do not follow a link: Forebay did not create it.
            if files::status_of_name(temporary)?.kind == Kind::File {
                files::set_mode_of_name(temporary, OWNER_ONLY_MODE)?;
            }
            open_own_part(temporary, source)
        }
        opened => opened,
    }
}

/// Opens a partial file that this process or a former one has made. Refuses what another user put under its name: that
/// user could read what is written.
pub(crate) fn open_own_part(temporary: &Path, source: &Status) -> Result<File, Reason> {
    let file = files::open_existing_rw(temporary)?;
    let found = files::status_of(&file, temporary)?;
    // Root gives a complete partial file to the owner of its source.
    let is_owner_ours =
        found.owner == users::user_id() || (users::is_root() && found.owner == source.owner);
    if found.kind != Kind::File || found.links != 1 || !is_owner_ours {
        return Err(Reason::new(
            &format!("another user has put something under the name {}", temporary.display()),
            "stage again, or choose a target that other users cannot write",
        ));
    }
    Ok(file)
}
