//! Copies, checksums and compares file contents.
//! Assumes a target that is new or empty where the source has holes: it never writes zeros there.
//! A stop takes effect after the block in progress. Never syncs.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use forebay_host::files;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::copy::blocks::{BLOCK_BYTES, Ends, is_sparse};
use crate::copy::context::{CopyContext, CopyEvent};
use crate::model::item::Item;
use crate::model::options::Verify;
use crate::model::reason::Reason;

impl CopyContext<'_> {
    /// Copies a range without its holes. Returns the checksum of its bytes and their offsets.
    pub(crate) fn copy_range(
        &self,
        ends: &Ends,
        range: Range<u64>,
        block: &mut [u8],
    ) -> Result<u64, Reason> {
        let mut checksum = Xxh3::new();
        let mut done_to = range.start;
        while let Some(data) =
            next_data(ends.source, &ends.item.source, ends.is_sparse, done_to..range.end)?
        {
            (self.on)(CopyEvent::Skipped(data.start - done_to));
            self.copy_data(ends, data.clone(), block, &mut checksum)?;
            done_to = data.end;
        }
        (self.on)(CopyEvent::Skipped(range.end.saturating_sub(done_to)));
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
            // Stop at the next block boundary, so that no write crosses the border of a stripe.
            let room = most as u64 - at % most as u64;
            let wanted = usize::try_from(room.min(data.end - at)).unwrap_or(most);
            let read = read_up_to(ends.source, &mut block[..wanted], at);
            let read = files::with_path(read, "read", &item.source)?;
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
            files::with_path(written, "write", &item.target)?;
            at += read as u64;
            self.add_copied(read as u64);
        }
        Ok(())
    }

    /// The checksum of the destination over the data ranges of the source; `None` if it is shorter.
    pub(crate) fn checksum_of(
        &self,
        ends: &Ends,
        range: Range<u64>,
        block: &mut [u8],
    ) -> Result<Option<u64>, Reason> {
        let source = (ends.source, ends.item.source.as_path(), ends.is_sparse);
        checksum_of_data(source, (ends.target, &ends.item.target), range, block, &|read| {
            (self.on)(CopyEvent::Reread(read));
            self.check_stopped()
        })
    }

    /// Do source and destination have the same content?
    pub(crate) fn has_same_content(
        &self,
        source: &File,
        item: &Item,
        block: &mut [u8],
    ) -> Result<bool, Reason> {
        let target = match files::open_source(&item.target, false) {
            // It is replaced, as one that differs.
            Err(error) if error.is_denied() => return Ok(false),
            opened => opened?,
        };
        let (ours, theirs) = block.split_at_mut(block.len() / 2);
        let mut at = 0;
        loop {
            self.check_stopped()?;
            let read = files::with_path(source.read_at(ours, at), "read", &item.source)?;
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
}

/// Has the file this checksum, which [`Journal::checksum`](crate::Journal::checksum) had after a copy in one piece? No,
/// if `should_continue` returns false.
///
/// # Errors
/// Fails if the file cannot be read.
pub fn has_checksum(
    path: &Path,
    checksum: u64,
    should_continue: &dyn Fn() -> bool,
) -> Result<bool, Reason> {
    let file = files::open_source(path, false)?;
    let status = files::status_of(&file, path)?;
    let on_read = |_| if should_continue() { Ok(()) } else { Err(Reason::stopped()) };
    let (source, block) = ((&file, path, is_sparse(&status)), &mut vec![0; BLOCK_BYTES]);
    let found = checksum_of_data(source, (&file, path), 0..status.size_bytes, block, &on_read)?;
    // A large file has the checksum of the checksums of its pieces.
    Ok(found.is_some_and(|found| found == checksum || xxh3_64(&found.to_le_bytes()) == checksum))
}

/// As [`CopyContext::checksum_of`]. Calls `on_read` with the bytes of each read.
fn checksum_of_data(
    (source, source_path, is_sparse): (&File, &Path, bool),
    (target, target_path): (&dyn FileExt, &Path),
    range: Range<u64>,
    block: &mut [u8],
    on_read: &dyn Fn(u64) -> Result<(), Reason>,
) -> Result<Option<u64>, Reason> {
    let mut checksum = Xxh3::new();
    let mut done_to = range.start;
    while let Some(data) = next_data(source, source_path, is_sparse, done_to..range.end)? {
        checksum.update(&data.start.to_le_bytes());
        done_to = data.end;
        let mut at = data.start;
        while at < data.end {
            let wanted =
                usize::try_from(data.end - at).map_or(block.len(), |left| left.min(block.len()));
            let read = read_up_to(target, &mut block[..wanted], at);
            let read = files::with_path(read, "read", target_path)?;
            if read == 0 {
                return Ok(None);
            }
            checksum.update(&block[..read]);
            at += read as u64;
            on_read(read as u64)?;
        }
    }
    Ok(Some(checksum.digest()))
}

/// Reads until `bytes` is full or the file ends: a short read would misalign later blocks.
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
