//! The inodes that this node has open, and the thread that looks after those that are lazy.
//! Keeps no inode alive: open files do. Without that thread no inode stays lazy.

use std::collections::HashMap;
use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use forebay_host::{clock, threads};
use parking_lot::Mutex;

use crate::announcements::Announcements;
use crate::client::Client;
use crate::error::Errno;
use crate::lazy_file::LazyFile;
use crate::lost_data::LostData;
use crate::open_inode::OpenInode;

/// Between two looks at what other nodes announced: the most that a strict read of another node waits for this one to
/// begin writing back.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

pub(crate) struct Inodes {
    pub(crate) client: Arc<Client>,
    /// Where processes see the mount.
    point: PathBuf,
    pub(crate) announcements: Announcements,
    pub(crate) lost: LostData,
    /// By the kernel's number.
    open: Mutex<HashMap<u64, Weak<OpenInode>>>,
    watched: Mutex<Watched>,
}

/// Inodes that are lazy, or were a moment ago.
#[derive(Default)]
struct Watched {
    inodes: Vec<Weak<OpenInode>>,
    /// Whether the thread runs.
    has_thread: bool,
}

impl Inodes {
    pub(crate) fn new(client: &Arc<Client>, point: PathBuf) -> Result<Self, Errno> {
        Ok(Self {
            client: Arc::clone(client),
            point,
            announcements: Announcements::begin(client)?,
            lost: LostData::default(),
            open: Mutex::default(),
            watched: Mutex::default(),
        })
    }

    /// The inode with this number, which becomes open if it is not.
    pub(crate) fn get_or_open(self: &Arc<Self>, node: u64) -> Arc<OpenInode> {
        let mut open = self.open.lock();
        if let Some(known) = open.get(&node).and_then(Weak::upgrade) {
            return known;
        }
        let inode = Arc::new(OpenInode::new(self, node));
        open.insert(node, Arc::downgrade(&inode));
        inode
    }

    pub(crate) fn find(&self, node: u64) -> Option<Arc<OpenInode>> {
        self.open.lock().get(&node).and_then(Weak::upgrade)
    }

    /// After the last use of an inode. Another one may have its number by now.
    pub(crate) fn forget(&self, node: u64) {
        let mut open = self.open.lock();
        if open.get(&node).is_some_and(|inode| inode.strong_count() == 0) {
            open.remove(&node);
        }
    }

    /// As [`LazyFile::open`].
    pub(crate) fn open_lazily(
        &self,
        path: &Path,
        access: c_int,
        ino: u64,
    ) -> Result<Option<LazyFile>, Errno> {
        LazyFile::open(&self.client, (&self.point, path), access, ino)
    }

    /// Looks after a lazy inode until it is strict again.
    pub(crate) fn watch(self: &Arc<Self>, inode: &Arc<OpenInode>) {
        let mut watched = self.watched.lock();
        let weak = Arc::downgrade(inode);
        if !watched.inodes.iter().any(|known| known.ptr_eq(&weak)) {
            watched.inodes.push(weak);
        }
        if !watched.has_thread {
            let inodes = Arc::clone(self);
            watched.has_thread = threads::spawn(move || inodes.serve()).is_ok();
        }
        if !watched.has_thread {
            drop(watched);
            inode.make_strict(); // nobody would notice that another node needs it strict
        }
    }

    /// Looks at announcements until no inode is lazy.
    fn serve(&self) {
        loop {
            clock::sleep(LOOK_INTERVAL);
            let inodes = self.watched.lock().inodes.clone();
            if let Ok(announced) = self.announcements.strict_version() {
                for inode in inodes.iter().filter_map(Weak::upgrade) {
                    inode.end_if_needed(announced);
                }
            }
            let mut watched = self.watched.lock();
            watched.inodes.retain(|inode| inode.upgrade().is_some_and(|inode| inode.is_lazy()));
            if watched.inodes.is_empty() {
                watched.has_thread = false;
                return;
            }
        }
    }
}
