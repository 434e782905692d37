//! Looking through a source, and at what stands at its target already.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SendError, SyncSender};

use forebay_host::files::{self, Directory, Kind, Status};

use crate::engine::Owner;
use crate::item::{is_same, remedy};
use crate::{Failure, Transfer};

/// Rows of one portion, which is written down in one transaction.
const ROWS: usize = 4096;

/// Which targets are wanted.
pub(crate) type IsWanted<'a> = &'a (dyn Fn(&Path) -> bool + Sync);

/// Something found in a source.
pub(crate) enum Row {
    Directory {
        source: PathBuf,
        target: PathBuf,
        place: PathBuf,
        /// How the target was, if what is in it was compared with what is there.
        standing: Option<Stamp>,
        is_of_tree: bool,
    },
    Entry {
        /// Number of its directory among those of this transfer.
        directory: usize,
        name: OsString,
        source_name: Option<OsString>,
        status: Status,
        /// It stands at its target already, unchanged.
        is_there: bool,
    },
    Refusal(Failure),
}

impl Row {
    pub(crate) fn directory(source: &Path, target: &Path, is_of_tree: bool) -> Self {
        // One spelling: a slash at the end makes no other directory.
        Self::Directory {
            source: source.components().collect(),
            target: target.components().collect(),
            place: resolve(target),
            standing: None,
            is_of_tree,
        }
    }
}

/// The other end is gone: it knows why.
type Sent = Result<(), SendError<Vec<Row>>>;

/// A directory that is still to be looked into.
struct Ahead {
    source: PathBuf,
    target: PathBuf,
}

struct Looking<'a> {
    is_wanted: IsWanted<'a>,
    /// Sources that are not to be staged, with all below them.
    left_out: BTreeSet<PathBuf>,
    rows: Vec<Row>,
    /// Directories that were found.
    directories: usize,
    is_over: &'a AtomicBool,
    give: SyncSender<Vec<Row>>,
}

/// Gives away what is in a tree, parents before children, portion by portion, until nobody takes it or it is
/// over.
pub(crate) fn look_through(
    transfer: &Transfer,
    is_wanted: IsWanted,
    left_out: BTreeSet<PathBuf>,
    is_over: &AtomicBool,
    give: SyncSender<Vec<Row>>,
) {
    let mut looking = Looking {
        is_wanted,
        left_out,
        rows: Vec::new(),
        directories: 0,
        is_over,
        give,
    };
    let looked = looking.look_through(Ahead {
        source: transfer.source.clone(),
        target: transfer.target.clone(),
    });
    // Whoever does not take it knows why.
    looked.and_then(|()| looking.hand_over()).ok();
}

impl Looking<'_> {
    fn look_through(&mut self, top: Ahead) -> Sent {
        let mut ahead = vec![top];
        while let Some(one) = ahead.pop() {
            self.go_on()?;
            self.push(Row::directory(&one.source, &one.target, true))?;
            self.directories += 1;
            self.look_into(&one, &mut ahead)?;
        }
        Ok(())
    }

    fn look_into(&mut self, one: &Ahead, ahead: &mut Vec<Ahead>) -> Sent {
        let opened = Directory::open(&one.source).and_then(|opened| {
            let names = opened.names()?;
            Ok((opened, names))
        });
        let (opened, names) = match opened {
            Ok(opened) => opened,
            Err(error) => return self.refuse(&one.source, &error),
        };
        for name in names {
            self.go_on()?;
            match opened.status_of_name(&name) {
                _ if self.is_left_out(one, &name) => {}
                Ok(status) if status.kind == Kind::Directory => ahead.push(Ahead {
                    source: one.source.join(&name),
                    target: one.target.join(&name),
                }),
                Ok(_) if !(self.is_wanted)(&one.target.join(&name)) => {}
                Ok(status) => self.push(Row::Entry {
                    directory: self.directories - 1,
                    name,
                    source_name: None,
                    status,
                    is_there: false,
                })?,
                Err(error) => self.refuse(&one.source.join(&name), &error)?,
            }
        }
        Ok(())
    }

    /// Each thing that is looked at may take long: a portion of them would be too much for whoever stops it.
    fn go_on(&self) -> Sent {
        if self.is_over.load(Ordering::Relaxed) {
            return Err(SendError(Vec::new()));
        }
        Ok(())
    }

    fn is_left_out(&self, one: &Ahead, name: &OsStr) -> bool {
        !self.left_out.is_empty() && self.left_out.contains(&one.source.join(name))
    }

    fn refuse(&mut self, path: &Path, error: &forebay_host::Error) -> Sent {
        self.push(Row::Refusal(Failure {
            path: path.to_owned(),
            reason: error.to_string(),
            remedy: remedy(error),
            errno: error.source.raw_os_error(),
        }))
    }

    fn push(&mut self, row: Row) -> Sent {
        self.rows.push(row);
        if self.rows.len() < ROWS {
            return Ok(());
        }
        self.hand_over()
    }

    fn hand_over(&mut self) -> Sent {
        self.give.send(std::mem::take(&mut self.rows))
    }
}

/// Compares each file of what was found with what stands at its target, and gives it on, as long as somebody takes
/// it and it is not over.
pub(crate) fn compare(
    owner: &Owner,
    is_over: &AtomicBool,
    found: &Receiver<Vec<Row>>,
    give: &SyncSender<Vec<Row>>,
) {
    let mut standing = None; // of the directory whose files come
    let mut new: Option<PathBuf> = None; // what is below it is not at the target either; all of that comes next
    for mut rows in found {
        for row in &mut rows {
            if is_over.load(Ordering::Relaxed) {
                return;
            }
            match row {
                Row::Directory {
                    target,
                    standing: stamp,
                    ..
                } => {
                    let is_new = new.as_ref().is_some_and(|new| target.starts_with(new));
                    standing = (!is_new).then(|| Standing::open(target)).flatten();
                    if standing.is_none() && !is_new {
                        new = Some(target.clone());
                    }
                    *stamp = standing.as_ref().map(|standing| standing.stamp);
                }
                Row::Entry {
                    name,
                    status,
                    is_there,
                    ..
                } => {
                    let there = standing.as_ref();
                    *is_there = there.is_some_and(|there| there.holds(name, status, owner));
                }
                Row::Refusal(_) => {}
            }
        }
        if give.send(rows).is_err() {
            return; // whoever does not take it knows why
        }
    }
}

/// How a directory is: while this is the same, it is the same one, and no name in it was made, taken away or made
/// another file's, but within one tick of its file system's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) device: u64,
    inode: u64,
    changed: (i64, i64),
}

impl Stamp {
    pub(crate) fn of(status: &Status) -> Self {
        Self {
            device: status.device,
            inode: status.inode,
            changed: status.changed,
        }
    }

    /// Where whole seconds are kept, nobody can tell what was changed within one.
    pub(crate) fn is_fine(&self) -> bool {
        self.changed.1 != 0
    }
}

/// A directory that stands at its target.
struct Standing {
    opened: Directory,
    /// From before it was looked into.
    stamp: Stamp,
}

impl Standing {
    /// None: it is not there, or cannot be looked into.
    fn open(target: &Path) -> Option<Self> {
        let opened = Directory::open(target).ok()?;
        let stamp = Stamp::of(&opened.status_of_name(OsStr::new(".")).ok()?);
        Some(Self { opened, stamp })
    }

    /// Does a file stand in it as it is at its source, so that nothing is to be done but to sync it? Where that is not
    /// plain to see, whoever moves it looks closer.
    fn holds(&self, name: &OsStr, status: &Status, owner: &Owner) -> bool {
        if status.kind != Kind::File || status.links > 1 || status.size_bytes == 0 {
            return false;
        }
        let Ok(found) = self.opened.status_of_name(name) else {
            return false;
        };
        let is_source = (found.device, found.inode) == (status.device, status.inode);
        is_same(&found, status)
            && owner.is_kept(status, &found)
            && found.mode == status.mode
            && found.device == self.stamp.device
            && !is_source
    }
}

/// The real path of the nearest ancestor that exists, and the rest as written.
pub(crate) fn resolve(directory: &Path) -> PathBuf {
    files::final_path(directory).unwrap_or_else(|_| directory.to_owned())
}
