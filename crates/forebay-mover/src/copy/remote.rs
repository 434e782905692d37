//! Copies with the help of other nodes. Plan, journal and final names stay with this one: another node writes
//! temporary files only, and only where it sees the same files as this one. What it cannot copy is copied here.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_host::files::{self, DIRECT_BYTES, Direct, parent_of};
use forebay_host::system;

use crate::copy::blocks::{BLOCK_BYTES, Ends, is_sparse};
use crate::copy::context::{CopyContext, CopyEvent};
use crate::copy::durability::{CopiedFile, Syncing, sync};
use crate::copy::large_copy::LargeCopy;
use crate::copy::large_files::open_own_part;
use crate::copy::task_guard::TaskGuard;
use crate::copy::task_queue::Task;
use crate::error::Error;
use crate::journal::database::Journal;
use crate::model::item::{Item, LINK};
use crate::model::options::Options;
use crate::model::partial_names;
use crate::model::reason::Reason;
use crate::model::remote::{
    RemoteAnswer, RemoteCopied, RemoteCopier, RemoteFiles, RemoteItem, RemoteOptions, RemotePiece,
    RemoteRequest,
};
use crate::stop::Stop;

/// Threads for each other node: each waits for one answer.
pub(crate) const THREADS_PER_NODE: usize = 4;

/// Another node in one run.
pub(crate) struct Helper<'a> {
    copier: &'a dyn RemoteCopier,
    options: RemoteOptions,
    /// Whether it sees the same files, by device here.
    same: HashMap<u64, bool>,
}

impl<'a> Helper<'a> {
    pub(crate) fn new(copier: &'a dyn RemoteCopier, options: &Options) -> Self {
        Self { copier, options: RemoteOptions::of(options), same: HashMap::new() }
    }
}

impl CopyContext<'_> {
    /// Gives tasks to another node until there are none, or it does not answer.
    pub(crate) fn work_remotely(&self, mut helper: Helper) {
        let mut memory = Vec::new();
        loop {
            let task = match self.take(true) {
                Ok(None) => return,
                Ok(Some(task)) => task,
                Err(error) => return self.set_broken(error),
            };
            let _guard = TaskGuard::new(self, false);
            let done = match task {
                Task::Batch(items) => self.batch_remotely(items, &mut helper, &mut memory),
                Task::Piece(copying, piece) => {
                    self.piece_remotely(&copying, piece, &mut helper, &mut memory)
                }
                Task::Begin(..) | Task::Check(..) => Ok(true), // `take` leaves them to this node
            };
            match done {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => return self.set_broken(error),
            }
        }
    }

    /// Copies a batch there; what fails there, here. False if the node does not answer.
    fn batch_remotely(
        &self,
        mut items: Vec<Item>,
        helper: &mut Helper,
        memory: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        let mut filled = self.create_staged(&mut items)?;
        let mut syncing = Syncing::of(self.options.syncs(), items.len());
        let (sent, mut rest) = self.items_for(items, helper);
        let mut written = Vec::new();
        let mut answers = true;
        if !sent.is_empty() {
            let items = sent.iter().map(|(_, remote)| remote.clone()).collect();
            let request = RemoteFiles { options: helper.options.clone(), items };
            let sent: Vec<Item> = sent.into_iter().map(|(item, _)| item).collect();
            match helper.copier.copy(&RemoteRequest::Files(request)) {
                Ok(RemoteAnswer::Files { copied, notes, bytes, skipped_bytes })
                    if copied.len() == sent.len() =>
                {
                    self.add_copied(bytes);
                    (self.on)(CopyEvent::Skipped(skipped_bytes));
                    let files = copied.iter().filter(|one| one.is_ok()).count();
                    self.count_for(helper, files as u64, bytes);
                    self.add_notes(notes);
                    for (item, copied) in sent.into_iter().zip(copied) {
                        match copied {
                            Ok(copied) if self.is_made_here(&item, &copied) => {
                                written.push(self.written(item, copied, &mut syncing));
                            }
                            _ => rest.push(item), // tried again here, which gives the reason
                        }
                    }
                }
                Ok(_) => (answers, rest) = (false, [rest, sent].concat()),
                Err(error) => {
                    self.give_up(helper, &error);
                    (answers, rest) = (false, [rest, sent].concat());
                }
            }
        }
        let block = aligned(memory);
        for item in rest {
            self.write_here(item, &mut written, &mut syncing, block)?;
        }
        self.complete_batch(written, &mut filled, &syncing, block)?;
        self.discard_staged(&mut filled)?;
        Ok(answers)
    }

    /// Whether what the other node made by its path is in the directory of the item.
    fn is_made_here(&self, item: &Item, copied: &RemoteCopied) -> bool {
        let path = copied.temporary.as_ref().map_or(item.target.as_path(), Path::new);
        let is_new = copied.checksum.is_some();
        !is_new || self.check_made_name(item, path, false).is_ok()
    }

    fn written(&self, item: Item, copied: RemoteCopied, syncing: &mut Syncing) -> CopiedFile {
        let temporary = copied.temporary.map(PathBuf::from);
        if let Syncing::Together(..) = syncing {
            let target = temporary.clone().unwrap_or_else(|| item.target.clone());
            // The other node synced it. This one syncs the names.
            syncing.there(&Item { target, ..item.clone() }).ok();
        }
        CopiedFile {
            was_there: temporary.is_none() && copied.checksum.is_none(),
            temporary,
            checksum: copied.checksum,
            size_bytes: copied.size_bytes,
            item,
        }
    }

    /// The items that the node can copy, and the others.
    fn items_for(
        &self,
        items: Vec<Item>,
        helper: &mut Helper,
    ) -> (Vec<(Item, RemoteItem)>, Vec<Item>) {
        let (mut sent, mut rest) = (Vec::new(), Vec::new());
        for item in items {
            let status = match item.is_named {
                true => files::status(&item.source),
                false => files::status_of_name(&item.source),
            };
            let directory = item.filled.as_deref().unwrap_or_else(|| parent_of(&item.target));
            match status {
                Ok(status)
                    if item.kind != LINK
                        && self.check_directory(&item).is_ok()
                        && self.check_same_files(helper, directory) =>
                {
                    let remote = RemoteItem::of(&item, &status, self.is_fresh(&item));
                    sent.push((item, remote));
                }
                _ => rest.push(item),
            }
        }
        (sent, rest)
    }

    /// Whether the node sees the same files in this directory: it reads a file that this one made there.
    fn check_same_files(&self, helper: &mut Helper, directory: &Path) -> bool {
        let Ok(status) = files::status(directory) else { return false };
        if let Some(same) = helper.same.get(&status.device) {
            return *same;
        }
        let same = self.sees_directory(helper, directory).unwrap_or(false);
        helper.same.insert(status.device, same);
        if !same {
            let text = format!(
                "{} does not see these files: it does not help to copy them",
                helper.copier.node()
            );
            self.warn_once(&text, directory);
        }
        same
    }

    fn sees_directory(&self, helper: &Helper, directory: &Path) -> forebay_host::Result<bool> {
        let random: [u8; 16] = system::random_bytes()?;
        let name = random.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let path = partial_names::in_directory(directory, &self.options.tag, name);
        let mut file = files::make_file(&path, 0o600)?;
        let made = file.write_all(&random).and_then(|()| file.sync_all());
        drop(file);
        let request = RemoteRequest::Look { path: path.clone().into() };
        let answer = made.is_ok().then(|| helper.copier.copy(&request));
        files::remove_file(&path)?;
        let found =
            matches!(answer, Some(Ok(RemoteAnswer::Looked(Some(found)))) if found == random);
        Ok(found)
    }

    /// Copies a piece there, or here. False if the node does not answer.
    fn piece_remotely(
        &self,
        copying: &Arc<LargeCopy>,
        piece: u64,
        helper: &mut Helper,
        memory: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        let range = self.range(copying, piece);
        let directory = parent_of(&copying.temporary);
        if copying.is_lost() || !self.check_same_files(helper, directory) {
            return self.piece(copying, piece, aligned(memory)).map(|()| true);
        }
        let request = RemotePiece {
            options: helper.options.clone(),
            item: RemoteItem::of(&copying.item, &copying.status, false),
            temporary: copying.temporary.clone().into(),
            start: range.start,
            end: range.end,
            is_sparse: is_sparse(&copying.status),
        };
        match helper.copier.copy(&RemoteRequest::Piece(request)) {
            Ok(RemoteAnswer::Piece(Ok((checksum, bytes)))) => {
                self.add_copied(bytes);
                self.count_for(helper, 0, bytes);
                (self.on)(CopyEvent::Skipped((range.end - range.start).saturating_sub(bytes)));
                self.piece_is_copied(copying, piece, checksum, aligned(memory))?;
                Ok(true)
            }
            // Tried again here, which gives the reason.
            Ok(_) => self.piece(copying, piece, aligned(memory)).map(|()| true),
            Err(error) => {
                self.give_up(helper, &error);
                self.piece(copying, piece, aligned(memory)).map(|()| false)
            }
        }
    }

    fn count_for(&self, helper: &Helper, files: u64, bytes: u64) {
        let mut all = self.totals.by_node.lock();
        let share = all.entry(helper.copier.node().to_owned()).or_default();
        share.0 += files;
        share.1 += bytes;
    }

    fn give_up(&self, helper: &Helper, error: &str) {
        let text = format!("{} does not help to copy any more: {error}", helper.copier.node());
        self.warn_once(&text, Path::new("/"));
    }

    fn add_notes(&self, notes: Vec<(String, u64, OsString)>) {
        let mut all = self.notes.lock();
        for (text, count, example) in notes {
            all.entry(text).or_insert_with(|| (0, PathBuf::from(example))).0 += count;
        }
    }
}

/// A block that direct I/O can use.
fn aligned(memory: &mut Vec<u8>) -> &mut [u8] {
    if memory.is_empty() {
        memory.resize(BLOCK_BYTES + DIRECT_BYTES, 0);
    }
    let from = memory.as_ptr().align_offset(DIRECT_BYTES);
    &mut memory[from..from + BLOCK_BYTES]
}

/// Carries out the request of another node on this one, until `should_continue` returns false: the other node then copies the
/// files under the same temporary names.
///
/// # Errors
/// If this node cannot begin.
pub fn serve_remote(
    request: &RemoteRequest,
    should_continue: &(dyn Fn() -> bool + Sync),
) -> Result<RemoteAnswer, Error> {
    let files = match request {
        RemoteRequest::Look { path } => {
            return Ok(RemoteAnswer::Looked(files::read_bytes(Path::new(path)).ok()));
        }
        RemoteRequest::Piece(piece) => return serve_piece(piece, should_continue),
        RemoteRequest::Files(files) => files,
    };
    let options = files.options.to_options();
    let (bytes, skipped) = (AtomicU64::new(0), AtomicU64::new(0));
    let on = |event| match event {
        CopyEvent::Bytes(more) => drop(bytes.fetch_add(more, Ordering::Relaxed)),
        CopyEvent::Skipped(more) => drop(skipped.fetch_add(more, Ordering::Relaxed)),
        CopyEvent::Reread(_) | CopyEvent::File => {}
    };
    let journal = Journal::in_memory()?;
    let is_over = || !should_continue();
    let stop = Stop::of(&is_over, false);
    let mut run = CopyContext::new(&journal, &options, &on, &stop);
    run.directories.fresh = files
        .items
        .iter()
        .filter(|item| item.is_fresh)
        .map(|item| item.to_item().directory)
        .collect();
    let mut memory = Vec::new();
    let block = aligned(&mut memory);
    let mut syncing = Syncing::of(options.syncs(), files.items.len());
    let mut copied: Vec<_> =
        files.items.iter().map(|item| run.copy_for_other(item, block, &mut syncing)).collect();
    if let Syncing::Together(file_systems, _) = &syncing
        && let Err(reason) = sync(file_systems)
    {
        copied.iter_mut().for_each(|one| *one = Err(reason.clone()));
    }
    let notes = std::mem::take(&mut *run.notes.lock()).into_iter();
    Ok(RemoteAnswer::Files {
        copied,
        notes: notes.map(|(text, (count, example))| (text, count, example.into())).collect(),
        bytes: bytes.into_inner(),
        skipped_bytes: skipped.into_inner(),
    })
}

impl CopyContext<'_> {
    fn copy_for_other(
        &self,
        item: &RemoteItem,
        block: &mut [u8],
        syncing: &mut Syncing,
    ) -> Result<RemoteCopied, Reason> {
        let (wanted, item) = (item, item.to_item());
        let status = match item.is_named {
            true => files::status(&item.source)?,
            false => files::status_of_name(&item.source)?,
        };
        if !wanted.is_same_source(&status) {
            return Err(other_file());
        }
        let (temporary, checksum, size_bytes) = self.write(&item, block, syncing)?;
        Ok(RemoteCopied { temporary: temporary.map(Into::into), checksum, size_bytes })
    }
}

/// The other node saw another file, or this one sees it late.
fn other_file() -> Reason {
    Reason::changed("it is another file on the other node")
}

fn serve_piece(
    piece: &RemotePiece,
    should_continue: &(dyn Fn() -> bool + Sync),
) -> Result<RemoteAnswer, Error> {
    let options = piece.options.to_options();
    let bytes = AtomicU64::new(0);
    let on = |event| {
        if let CopyEvent::Bytes(more) = event {
            bytes.fetch_add(more, Ordering::Relaxed);
        }
    };
    let journal = Journal::in_memory()?;
    let is_over = || !should_continue();
    let stop = Stop::of(&is_over, false);
    let run = CopyContext::new(&journal, &options, &on, &stop);
    let copied = run.copy_piece_for_other(piece);
    Ok(RemoteAnswer::Piece(copied.map(|checksum| (checksum, bytes.into_inner()))))
}

impl CopyContext<'_> {
    fn copy_piece_for_other(&self, piece: &RemotePiece) -> Result<u64, Reason> {
        let item = piece.item.to_item();
        let source = files::open_source(&item.source, item.is_named)?;
        if !piece.item.is_same_source(&files::status_of(&source, &item.source)?) {
            return Err(other_file());
        }
        let temporary = Path::new(&piece.temporary);
        let file = open_own_part(temporary, &files::status_of(&source, &item.source)?)?;
        let target = match self.options.past_page_cache {
            true => Direct::to_write(file),
            false => Direct::buffered(file),
        };
        let ends =
            Ends { source: &source, target: &target, item: &item, is_sparse: piece.is_sparse };
        let mut memory = Vec::new();
        let checksum = self.copy_range(&ends, piece.start..piece.end, aligned(&mut memory))?;
        // Also without `durable`: the other node must see it.
        files::with_path(target.plain().sync_all(), "sync", temporary)?;
        Ok(checksum)
    }
}
