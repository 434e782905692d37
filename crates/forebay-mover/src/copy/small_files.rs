//! Small files in batches: Forebay writes all files, syncs them together, renames them, and syncs again.
//! A sync for each file would take most of the time.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use forebay_host::files::{self, parent_of};
use forebay_host::files::{Kind, Status};

use crate::copy::blocks::{Ends, RETRIES, differs, is_sparse};
use crate::copy::context::{CopyContext, CopyEvent};
use crate::copy::durability::{CopiedFile, Syncing, sync};

use crate::copy::leaf_directories::{StagedDirectory, arrived};
use crate::copy::target::{OWNER_ONLY_MODE, target_status};
use crate::error::Error;
use crate::model::item::{Item, LINK, Step};
use crate::model::options::{Verify, WriteMode};
use crate::model::partial_names::part_of;
use crate::model::reason::Reason;
use crate::model::state::State;
use crate::model::version::{is_same, is_untouched};

impl CopyContext<'_> {
    /// Copies these files and links. Failures are recorded in the journal.
    pub(crate) fn batch(&self, mut items: Vec<Item>, block: &mut [u8]) -> Result<(), Error> {
        let mut filled = self.create_staged(&mut items)?;
        self.copy_batch(items, &mut filled, block)?;
        self.discard_staged(&mut filled)
    }

    /// Copies these files and links. Items with a partial directory are written into it.
    pub(crate) fn copy_batch(
        &self,
        items: Vec<Item>,
        filled: &mut [StagedDirectory],
        block: &mut [u8],
    ) -> Result<(), Error> {
        let mut syncing = Syncing::of(self.options.syncs(), items.len());
        let mut written = Vec::with_capacity(items.len());
        for item in items {
            self.write_here(item, &mut written, &mut syncing, block)?;
        }
        self.complete_batch(written, filled, &syncing, block)
    }

    /// Writes one file or link, or records its failure.
    pub(crate) fn write_here(
        &self,
        item: Item,
        written: &mut Vec<CopiedFile>,
        syncing: &mut Syncing,
        block: &mut [u8],
    ) -> Result<(), Error> {
        match self.write(&item, block, syncing) {
            Ok((temporary, checksum, size_bytes)) => written.push(CopiedFile {
                was_there: temporary.is_none() && checksum.is_none(),
                item,
                temporary,
                checksum,
                size_bytes,
            }),
            Err(reason) => self.record_failed(&item, reason)?,
        }
        Ok(())
    }

    /// Syncs written files, reads them back if requested, and gives them their final names.
    pub(crate) fn complete_batch(
        &self,
        mut written: Vec<CopiedFile>,
        filled: &mut [StagedDirectory],
        syncing: &Syncing,
        block: &mut [u8],
    ) -> Result<(), Error> {
        if let Syncing::Together(file_systems, _) = syncing
            && !self.is_stopped()
            && let Err(reason) = sync(file_systems)
        {
            return self.all_failed(&written, &reason);
        }
        if self.is_stopped() {
            return Ok(()); // after a stop, `end` removes the partial files
        }
        let keeps = self.options.verify != Verify::Off;
        self.journal.apply_updates(&steps(&written, State::Copied, keeps))?;
        if self.options.verify == Verify::End {
            written = self.verify(written, block)?;
            self.journal.apply_updates(&steps(&written, State::Verified, false))?;
        }
        self.rename_staged(filled, &written)?;
        self.place(written, &arrived(filled), syncing)
    }

    fn place(
        &self,
        written: Vec<CopiedFile>,
        arrived: &BTreeSet<i64>,
        syncing: &Syncing,
    ) -> Result<(), Error> {
        let mut placed = Vec::with_capacity(written.len());
        for one in written {
            let has_arrived = one.item.filled.is_some() && arrived.contains(&one.item.directory);
            let renamed = match one.temporary.as_ref().filter(|_| !has_arrived) {
                Some(temporary) => self.put_in_place(temporary, &one.item),
                None => Ok(()),
            };
            match renamed {
                Ok(()) => placed.push(one),
                Err(reason) => self.record_failed(&one.item, reason)?,
            }
        }
        // Existing names were covered by the first sync.
        let is_renamed = placed.iter().any(|one| one.temporary.is_some());
        let targets = placed.iter().map(|one| one.item.target.as_path());
        let syncing = match syncing {
            Syncing::Together(..) if !is_renamed => &Syncing::Not,
            syncing => syncing,
        };
        if let Err(reason) = syncing.finish(targets) {
            return self.all_failed(&placed, &reason);
        }
        self.journal.apply_updates(&steps(&placed, State::Placed, false))?;
        for one in &placed {
            self.record_delivered(one.size_bytes, one.was_there);
        }
        Ok(())
    }

    fn all_failed(&self, written: &[CopiedFile], reason: &Reason) -> Result<(), Error> {
        for one in written {
            if let Some(temporary) = &one.temporary {
                self.remove_best_effort(temporary);
            }
            self.record_failed(&one.item, reason.clone())?;
        }
        Ok(())
    }

    /// Reads written files back and returns those whose content matches.
    pub(crate) fn verify(
        &self,
        written: Vec<CopiedFile>,
        block: &mut [u8],
    ) -> Result<Vec<CopiedFile>, Error> {
        let mut good = Vec::with_capacity(written.len());
        for one in written {
            let path = one.temporary.as_deref().unwrap_or(&one.item.target);
            let verified = match one.checksum {
                Some(checksum) if one.item.kind != LINK => {
                    self.matches_checksum(&one.item, path, one.size_bytes, checksum, block)
                }
                _ => Ok(true),
            };
            match verified.and_then(|is_same| is_same.then_some(()).ok_or_else(differs)) {
                Ok(()) => good.push(one),
                Err(reason) if reason.is_stop => {}
                Err(reason) => {
                    self.remove_best_effort(path);
                    self.record_failed(&one.item, reason)?;
                }
            }
        }
        Ok(good)
    }

    /// Does the leftover partial file match its checksum in the journal, if there is one?
    fn is_as_copied(
        &self,
        item: &Item,
        part: &Path,
        size_bytes: u64,
        block: &mut [u8],
    ) -> Result<bool, Reason> {
        match item.checksum {
            Some(checksum) if self.options.verify != Verify::Off => {
                self.matches_checksum(item, part, size_bytes, checksum, block)
            }
            _ => Ok(true),
        }
    }

    /// Compares the checksum of a file, read from the disk as far as the kernel allows.
    pub(crate) fn matches_checksum(
        &self,
        item: &Item,
        path: &Path,
        size_bytes: u64,
        checksum: u64,
        block: &mut [u8],
    ) -> Result<bool, Reason> {
        let target = files::open_source(path, false)?;
        files::drop_page_cache(&target, path)?;
        let source = files::open_source(&item.source, item.is_named)?;
        let is_sparse = is_sparse(&files::status_of(&source, &item.source)?);
        let (source, target) = (&source, &target);
        let ends = Ends { source, target, item, is_sparse };
        Ok(self.checksum_of(&ends, 0..size_bytes, block)? == Some(checksum))
    }

    /// Writes one file or link. Returns its temporary path if it has one, its checksum if it was
    /// copied now, and its size.
    pub(crate) fn write(
        &self,
        item: &Item,
        block: &mut [u8],
        syncing: &mut Syncing,
    ) -> Result<(Option<PathBuf>, Option<u64>, u64), Reason> {
        self.check_stopped()?;
        self.check_directory(item)?;
        if item.kind == LINK {
            let placed = self.write_link(item, syncing)?;
            let checksum = placed.as_ref().map(|_| 0);
            return Ok((placed, checksum, 0));
        }
        if let Some(size_bytes) = self.repair_if_unchanged_by_stat(item, syncing)? {
            self.drop_part(item);
            return Ok((None, None, size_bytes));
        }
        let source = files::open_source(&item.source, item.is_named)?;
        let status = files::status_of(&source, &item.source)?;
        self.check_source(item, &source, &status)?;
        let is_fresh = self.is_fresh(item);
        if !is_fresh && self.repair_if_unchanged(item, &source, &status, block)? {
            syncing.there(item)?;
            self.drop_part(item);
            (self.on)(CopyEvent::Skipped(status.size_bytes));
            return Ok((None, None, status.size_bytes));
        }
        self.check_may_replace(item)?;
        let temporary = part_of(item, &self.options.tag);
        // With `Verify::End`, a copied but unverified leftover has no checksum here: copy it again.
        let far_enough = match self.options.verify {
            Verify::End => State::Verified,
            Verify::Copy | Verify::Off => State::Copied,
        };
        if item.state >= far_enough
            && !self.memory.has(&item.source, &status)
            && is_whole(&temporary, &status)
            && self.is_as_copied(item, &temporary, status.size_bytes, block)?
        {
            syncing.there(&Item { target: temporary.clone(), ..item.clone() })?;
            (self.on)(CopyEvent::Skipped(status.size_bytes));
            return Ok((Some(temporary), None, status.size_bytes));
        }
        let in_place = is_fresh && self.options.placing == WriteMode::InPlace;
        let mode = first_mode(&status, is_fresh);
        let made = in_place.then(|| files::make_file(&item.target, mode).ok()).flatten();
        let is_direct = made.is_some();
        let target = match made {
            Some(target) => target,
            None if item.filled.is_some() => files::make_file(&temporary, mode)?,
            None => self.make_part(&temporary, mode)?,
        };
        let path = if is_direct { &item.target } else { &temporary };
        self.check_made(item, path, &target)?;
        let written =
            self.fill(item, &source, &target, status, block).and_then(|(checksum, status)| {
                syncing.written(item, target)?;
                Ok((checksum, status.size_bytes))
            });
        if written.is_err() {
            self.remove_best_effort(path);
        }
        let (checksum, size_bytes) = written?;
        Ok(((!is_direct).then_some(temporary), Some(checksum), size_bytes))
    }

    /// Copies content and attributes. Repeats this while the source changes, up to a limit.
    fn fill(
        &self,
        item: &Item,
        source: &File,
        target: &File,
        mut status: Status,
        block: &mut [u8],
    ) -> Result<(u64, Status), Reason> {
        let mut tries = 0;
        loop {
            let is_sparse = is_sparse(&status);
            let ends = Ends { source, target, item, is_sparse };
            if is_sparse {
                files::with_path(
                    target.set_len(status.size_bytes),
                    "set the size of",
                    &item.target,
                )?;
            }
            let copied = self.copy_range(&ends, 0..status.size_bytes, block);
            let now = files::status_of(source, &item.source)?;
            match copied {
                Ok(checksum) if is_untouched(&now, &status) => {
                    let paths = (item.source.as_path(), item.target.as_path());
                    self.copy_metadata(source, target, paths, &status)?;
                    return Ok((checksum, status));
                }
                Err(reason) if !reason.is_change => return Err(reason),
                _ if tries == RETRIES => {
                    return Err(Reason::changed("it was changed while it was copied, each time"));
                }
                _ => {}
            }
            self.check_version(item, &now)?;
            tries += 1;
            status = now;
            files::with_path(target.set_len(0), "set the size of", &item.target)?;
        }
    }

    /// Returns the temporary path; `None` if the destination is unchanged.
    fn write_link(&self, item: &Item, syncing: &mut Syncing) -> Result<Option<PathBuf>, Reason> {
        let leads_to = files::read_link(&item.source)?;
        let existing = target_status(&item.target)?.filter(|existing| existing.kind == Kind::Link);
        if existing.is_some() && files::read_link(&item.target)? == leads_to {
            syncing.there(item)?;
            self.drop_part(item);
            return Ok(None);
        }
        let temporary = part_of(item, &self.options.tag);
        let status = files::status_of_name(&item.source)?; // before there is a leftover
        match files::make_link(&leads_to, &temporary) {
            Err(error) if error.is_not_found() && item.filled.is_none() => {
                self.make_parents(&temporary)?;
                files::make_link(&leads_to, &temporary)?;
            }
            Err(error) if error.already_exists() => {
                files::remove_file(&temporary)?;
                files::make_link(&leads_to, &temporary)?;
            }
            made => made?,
        }
        self.check_made_name(item, &temporary, true)?;
        if let Some((owner, group)) = self.owner.owner_to_set(&status)
            && !self.owner.keeps_group_of_directory(&item.target)
            && let Err(error) = files::set_owner_of_name(&temporary, owner, group)
            && !self.owner.matches(&status, &files::status_of_name(&temporary)?)
        {
            self.owner_not_kept(error, &item.source)
                .inspect_err(|_| self.remove_best_effort(&temporary))?;
        }
        let dressed = files::set_times(&temporary, &status).map_err(Reason::from);
        let dressed = dressed.and_then(|()| match syncing {
            // A link cannot be synced itself. The sync of its directory follows the rename.
            Syncing::Together(..) => {
                let parent = parent_of(&temporary);
                syncing.written(item, files::open_directory(parent, true)?)
            }
            Syncing::Not | Syncing::Each => Ok(()),
        });
        if dressed.is_err() {
            self.remove_best_effort(&temporary);
        }
        dressed.map(|()| Some(temporary))
    }
}

/// Mode of a file during the copy. In a directory that only the owner can access, it is the final
/// mode at once. Setting extended attributes needs write permission.
fn first_mode(status: &Status, is_fresh: bool) -> u32 {
    const WRITE_OF_OWNER: u32 = 0o200;
    if is_fresh && status.mode & WRITE_OF_OWNER != 0 {
        return status.mode & 0o777;
    }
    OWNER_ONLY_MODE
}

/// Times are set last, so a partial file with the times of its source is complete.
fn is_whole(temporary: &Path, status: &Status) -> bool {
    files::status_of_name(temporary).is_ok_and(|part| is_same(&part, status))
}

/// Leaves out the checksums unless `keeps`: they are off, or the journal has them.
pub(crate) fn steps(written: &[CopiedFile], state: State, keeps: bool) -> Vec<Step> {
    let step = |one: &CopiedFile| Step {
        checksum: one.checksum.filter(|_| keeps),
        ..Step::to(&one.item, state)
    };
    written.iter().map(step).collect()
}
