//! Scans a source tree and sends what it finds in portions, parents before children.
//! Never follows a symbolic link below the source. Holds the names of one directory in memory, not those of the tree.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SendError;

use forebay_host::files::{self, Kind};

use crate::model::failure::Failure;
use crate::model::reason::remedy;
use crate::model::scan_entry::ScanEntry;
use crate::model::transfer::Transfer;
use crate::plan::failed_writes::FailedSources;
use forebay_host::files::Directory;

/// Rows of one portion, which the journal writes in one transaction.
const ROWS: usize = 4096;

/// Selects the destinations to plan.
pub(crate) type IsWanted<'a> = &'a (dyn Fn(&Path) -> bool + Sync);

/// Fails if the receiver is gone, which knows why.
pub(crate) type Sent = Result<(), SendError<Vec<ScanEntry>>>;

/// A directory still to be scanned.
struct PendingDirectory {
    source: PathBuf,
    target: PathBuf,
    /// Device and inode by its name in the directory above; none for the top, whose links are followed.
    identity: Option<(u64, u64)>,
}

impl PendingDirectory {
    /// Opens it and lists its names. A link that another user has put in its place is not followed.
    fn open(&self) -> forebay_host::Result<(Directory, Vec<OsString>)> {
        let opened = Directory::open(&self.source)?;
        let found = opened.status()?;
        let is_mounted = |device| {
            // An automatic mount came with the opening.
            let now = files::status_of_name(&self.source);
            device != found.device
                && now.is_ok_and(|now| (now.device, now.inode) == (found.device, found.inode))
        };
        if let Some((device, inode)) = self.identity
            && (device, inode) != (found.device, found.inode)
            && !is_mounted(device)
        {
            let why = std::io::Error::other("it was exchanged while it was listed");
            return files::with_path(Err(why), "list", &self.source);
        }
        let names = opened.names()?;
        Ok((opened, names))
    }
}

struct TreeScan<'a> {
    /// None if no source has a failed write.
    failed: Option<&'a FailedSources>,
    is_wanted: IsWanted<'a>,
    /// Excluded sources, with all that is below them.
    left_out: BTreeSet<PathBuf>,
    rows: Vec<ScanEntry>,
    /// Number of directories found.
    directories: usize,
    is_over: &'a AtomicBool,
    give: &'a mut dyn FnMut(Vec<ScanEntry>) -> Sent,
}

/// Sends the contents of a tree in portions, parents before children. Ends when the receiver is
/// gone or `is_over` is set.
pub(crate) fn walk_tree(
    failed: Option<&FailedSources>,
    transfer: &Transfer,
    is_wanted: IsWanted,
    left_out: BTreeSet<PathBuf>,
    is_over: &AtomicBool,
    give: &mut dyn FnMut(Vec<ScanEntry>) -> Sent,
) {
    let mut scan =
        TreeScan { failed, is_wanted, left_out, rows: Vec::new(), directories: 0, is_over, give };
    let looked = scan.walk_tree(PendingDirectory {
        source: transfer.source.clone(),
        target: transfer.target.clone(),
        identity: None,
    });
    // The receiver knows why it stopped.
    looked.and_then(|()| scan.send_found()).ok();
}

impl TreeScan<'_> {
    fn walk_tree(&mut self, top: PendingDirectory) -> Sent {
        let mut ahead = vec![top];
        while let Some(one) = ahead.pop() {
            self.go_on()?;
            self.push(ScanEntry::directory(&one.source, &one.target, true))?;
            self.directories += 1;
            self.scan_directory(&one, &mut ahead)?;
        }
        Ok(())
    }

    pub(crate) fn scan_directory(
        &mut self,
        one: &PendingDirectory,
        ahead: &mut Vec<PendingDirectory>,
    ) -> Sent {
        let (opened, names) = match one.open() {
            Ok(opened) => opened,
            Err(error) => return self.refuse(&one.source, &error),
        };
        for name in names {
            self.go_on()?;
            match opened.status_of_name(&name) {
                _ if self.is_left_out(one, &name) => {}
                Ok(status) if status.kind == Kind::Directory => ahead.push(PendingDirectory {
                    source: one.source.join(&name),
                    target: one.target.join(&name),
                    identity: Some((status.device, status.inode)),
                }),
                Ok(_) if !(self.is_wanted)(&one.target.join(&name)) => {}
                Ok(status) => {
                    let changed = self.failed.and_then(|failed| {
                        failed.changed_name(
                            &one.source.join(&name),
                            &one.target.join(&name),
                            &status,
                        )
                    });
                    let (name, source_name) = match changed {
                        Some(changed) => (changed, Some(name)),
                        None => (name, None),
                    };
                    let directory = self.directories - 1;
                    self.push(ScanEntry::Entry {
                        directory,
                        name,
                        source_name,
                        status,
                        is_there: false,
                    })?;
                }
                Err(error) => self.refuse(&one.source.join(&name), &error)?,
            }
        }
        Ok(())
    }

    /// Checked for each entry: a stop must not wait for a whole portion, since each stat can take long.
    fn go_on(&self) -> Sent {
        if self.is_over.load(Ordering::Relaxed) {
            return Err(SendError(Vec::new()));
        }
        Ok(())
    }

    fn is_left_out(&self, one: &PendingDirectory, name: &OsStr) -> bool {
        !self.left_out.is_empty() && self.left_out.contains(&one.source.join(name))
    }

    pub(crate) fn refuse(&mut self, path: &Path, error: &forebay_host::Error) -> Sent {
        self.push(ScanEntry::Refusal(Failure {
            path: path.to_owned(),
            reason: error.to_string(),
            remedy: remedy(error),
            errno: error.source.raw_os_error(),
        }))
    }

    pub(crate) fn push(&mut self, row: ScanEntry) -> Sent {
        self.rows.push(row);
        if self.rows.len() < ROWS {
            return Ok(());
        }
        self.send_found()
    }

    fn send_found(&mut self) -> Sent {
        (self.give)(std::mem::take(&mut self.rows))
    }
}
