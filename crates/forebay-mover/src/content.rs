//! The content of a file, and what belongs to it.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use forebay_host::files::{self, Status};
use xxhash_rust::xxh3::Xxh3;

use crate::engine::{Did, Run};
use crate::item::{Item, Reason};
use crate::options::Verify;

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

impl Run<'_> {
    /// Copies a range, but for its holes. Returns its checksum: that of its bytes, and of where they stand.
    pub(crate) fn copy_range(
        &self,
        ends: &Ends,
        range: Range<u64>,
        block: &mut [u8],
    ) -> Result<u64, Reason> {
        let mut checksum = Xxh3::new();
        let mut done_to = range.start;
        while let Some(data) = next_data(
            ends.source,
            &ends.item.source,
            ends.is_sparse,
            done_to..range.end,
        )? {
            (self.on)(Did::Passed(data.start - done_to));
            self.copy_data(ends, data.clone(), block, &mut checksum)?;
            done_to = data.end;
        }
        (self.on)(Did::Passed(range.end.saturating_sub(done_to)));
        Ok(checksum.digest())
    }

    fn copy_data(
        &self,
        ends: &Ends,
        data: Range<u64>,
        block: &mut [u8],
        checksum: &mut Xxh3,
    ) -> Result<(), Reason> {
        let item = ends.item;
        checksum.update(&data.start.to_le_bytes());
        let limit = self.bandwidth_limit.as_ref();
        let most = limit.map_or(block.len(), |limit| limit.block_bytes().min(block.len()));
        let mut at = data.start;
        while at < data.end {
            self.check_stopped()?;
            // Up to where a block begins, so that no write reaches over the border of a stripe.
            let room = most as u64 - at % most as u64;
            let wanted = usize::try_from(room.min(data.end - at)).unwrap_or(most);
            let read = read_up_to(ends.source, &mut block[..wanted], at);
            let read = files::named(read, "read", &item.source)?;
            if read == 0 {
                return Err(Reason::changed("it became shorter while it was copied"));
            }
            if let Some(limit) = limit {
                limit.wait(read as u64, || self.is_stopped());
            }
            if self.options.verify != Verify::Off {
                checksum.update(&block[..read]);
            }
            let written = ends.target.write_all_at(&block[..read], at);
            files::named(written, "write", &item.target)?;
            at += read as u64;
            self.has_copied(read as u64);
        }
        Ok(())
    }

    /// The checksum of what stands in a target, by the same data ranges as its source has; none if it is shorter.
    pub(crate) fn checksum_of(
        &self,
        ends: &Ends,
        range: Range<u64>,
        block: &mut [u8],
    ) -> Result<Option<u64>, Reason> {
        let mut checksum = Xxh3::new();
        let mut done_to = range.start;
        while let Some(data) = next_data(
            ends.source,
            &ends.item.source,
            ends.is_sparse,
            done_to..range.end,
        )? {
            checksum.update(&data.start.to_le_bytes());
            done_to = data.end;
            let mut at = data.start;
            while at < data.end {
                self.check_stopped()?;
                let wanted = usize::try_from(data.end - at)
                    .map_or(block.len(), |left| left.min(block.len()));
                let read = read_up_to(ends.target, &mut block[..wanted], at);
                let read = files::named(read, "read", &ends.item.target)?;
                if read == 0 {
                    return Ok(None);
                }
                checksum.update(&block[..read]);
                at += read as u64;
                (self.on)(Did::Again(read as u64));
            }
        }
        Ok(Some(checksum.digest()))
    }

    /// Does a target hold what its source holds?
    pub(crate) fn holds_the_same(
        &self,
        source: &File,
        item: &Item,
        block: &mut [u8],
    ) -> Result<bool, Reason> {
        let target = files::open_source(&item.target, false)?;
        let (ours, theirs) = block.split_at_mut(block.len() / 2);
        let mut at = 0;
        loop {
            self.check_stopped()?;
            let read = files::named(source.read_at(ours, at), "read", &item.source)?;
            if read == 0 {
                return Ok(true);
            }
            let same = target.read_exact_at(&mut theirs[..read], at).is_ok();
            if !same || ours[..read] != theirs[..read] {
                return Ok(false);
            }
            at += read as u64;
        }
    }

    /// Gives a file or directory what its source has beside its content. Owner before mode, since giving it
    /// away clears bits of that; mode after the extended attributes, which a file closed to us does not
    /// take; times last.
    pub(crate) fn give_attributes(
        &self,
        source: &File,
        target: &File,
        paths: (&Path, &Path),
        status: &Status,
    ) -> Result<(), Reason> {
        let (source_path, target_path) = paths;
        let standing = files::status_of(target, target_path)?;
        let mut is_dressed = standing.mode == status.mode;
        if let Some((owner, group)) = self.owner.given(status)
            && !self.owner.is_kept(status, &standing)
        {
            is_dressed = false; // that may clear bits of the mode
            if files::set_owner_of(target, target_path, owner, group).is_err() {
                self.note("the owner could not be kept", source_path);
            }
        }
        if self.give_extended_attributes(source, target, paths)? {
            is_dressed = false; // an access control list has a mode in it
        }
        if !is_dressed {
            files::set_mode_of(target, target_path, status.mode)?;
        }
        files::set_times_of(target, target_path, status)?;
        Ok(())
    }

    /// Mode and owner of a file that is there already, if they are not those of its source.
    pub(crate) fn mend(
        &self,
        item: &Item,
        status: &Status,
        standing: &Status,
    ) -> Result<(), Reason> {
        let gives = !self.owner.is_kept(status, standing);
        if !gives && standing.mode == status.mode {
            return Ok(());
        }
        if let Some((owner, group)) = self.owner.given(status).filter(|_| gives)
            && files::set_owner_of_name(&item.target, owner, group).is_err()
        {
            self.note("the owner could not be kept", &item.source);
        }
        Ok(files::set_mode(&item.target, status.mode)?)
    }
}

/// As much as there is: a part of a block would make all that follow it odd ones.
fn read_up_to(file: &dyn FileExt, bytes: &mut [u8], at: u64) -> io::Result<usize> {
    let mut read = 0;
    while read < bytes.len() {
        match file.read_at(&mut bytes[read..], at + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

/// What was read again is not what was written.
pub(crate) fn differs() -> Reason {
    Reason::new(
        "what was written reads back differently",
        "the target's file system or its machine is at fault; stage it again, there or elsewhere",
    )
}

fn next_data(
    file: &File,
    path: &Path,
    is_sparse: bool,
    range: Range<u64>,
) -> Result<Option<Range<u64>>, Reason> {
    if is_sparse {
        return Ok(files::data_from(file, path, range.start, range.end)?);
    }
    Ok((!range.is_empty()).then_some(range))
}
