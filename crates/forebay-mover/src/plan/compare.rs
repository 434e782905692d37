//! Compares scanned files with their destinations. Changes nothing.
//! Never opens a file: size, modification time, mode and owner decide. In doubt, and for files in memory, the run
//! compares again.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender};

use forebay_host::files::{Kind, Status};

use crate::model::scan_entry::ScanEntry;
use crate::model::version::{MemoryDevices, Stamp, is_same};
use crate::ownership::Owner;
use forebay_host::files::Directory;

/// Compares each scanned file with its destination and sends it on. Ends when the receiver is gone
/// or `is_over` is set.
pub(crate) fn compare(
    owner: &Owner,
    is_over: &AtomicBool,
    found: &Receiver<Vec<ScanEntry>>,
    give: &SyncSender<Vec<ScanEntry>>,
) {
    let (memory, mut source) = (MemoryDevices::default(), PathBuf::new());
    let mut existing = None; // destination of the current directory
    let mut new: Option<PathBuf> = None; // missing destination: skip all directories below it
    for mut rows in found {
        for row in &mut rows {
            if is_over.load(Ordering::Relaxed) {
                return;
            }
            match row {
                ScanEntry::Directory { source: of, target, existing: stamp, .. } => {
                    source.clone_from(of);
                    let is_new = new.as_ref().is_some_and(|new| target.starts_with(new));
                    existing = (!is_new).then(|| TargetDirectory::open(target)).flatten();
                    if existing.is_none() && !is_new {
                        new = Some(target.clone());
                    }
                    *stamp = existing.as_ref().map(|existing| existing.stamp);
                }
                ScanEntry::Entry { name, status, is_there, .. } => {
                    let there = existing.as_ref();
                    *is_there = there.is_some_and(|there| {
                        there.has_identical((&source, name), status, owner, &memory)
                    });
                }
                ScanEntry::Refusal(_) => {}
            }
        }
        if give.send(rows).is_err() {
            return; // the receiver knows why it stopped
        }
    }
}

/// An existing destination directory.
struct TargetDirectory {
    opened: Directory,
    /// Taken before its files are compared.
    stamp: Stamp,
}

impl TargetDirectory {
    /// `None`: it does not exist or cannot be read.
    pub(crate) fn open(target: &Path) -> Option<Self> {
        let opened = Directory::open(target).ok()?;
        let stamp = Stamp::of(&opened.status_of_name(OsStr::new(".")).ok()?);
        Some(Self { opened, stamp })
    }

    /// Does the destination hold an unchanged copy that needs only a sync? In doubt, the answer is
    /// no, and the copy compares in detail.
    fn has_identical(
        &self,
        (source, name): (&Path, &OsStr),
        status: &Status,
        owner: &Owner,
        memory: &MemoryDevices,
    ) -> bool {
        if status.kind != Kind::File || status.links > 1 || status.size_bytes == 0 {
            return false;
        }
        let Ok(found) = self.opened.status_of_name(name) else {
            return false;
        };
        let is_source = (found.device, found.inode) == (status.device, status.inode);
        is_same(&found, status)
            && owner.matches(status, &found)
            && found.mode == owner.mode_of_copy(status, &found)
            && found.device == self.stamp.device
            && !is_source
            && !memory.has(self.opened.path(), &found)
            && !memory.has(source, status)
    }
}
