//! Turns one request of the kernel into calls of libcephfs: a table, and the operations on names and attributes.
//! Assumes that libcephfs judges each caller, since the kernel checks no permissions on this mount.

use std::ffi::CStr;
use std::path::PathBuf;
use std::sync::Arc;

use forebay_ceph::{Attributes, LOST_GROUPS_ATTRIBUTE, Losses};
use forebay_host::process::is_renaming;
use parking_lot::Mutex;

use crate::announcements::without_announcements;
use crate::append::AppendLocks;
use crate::client::{ACCESS_ATTRIBUTES, ALL_ATTRIBUTES, Client, Identity, LINKS_ATTRIBUTES};
use crate::directories::Listing;
use crate::error::Errno;
use crate::handles::Handles;
use crate::inodes::Inodes;
use crate::last_lookups::LastLookups;
use crate::layouts::Layouts;
use crate::locks::Locks;
use crate::moves::{Moves, node_of};
use crate::open_file::File;
use crate::protocol::{self as fuse, Answer, Request};
use crate::read_ahead::ReadAhead;
use crate::reply::{Outcome, Reply, Result};
use crate::second_client::SecondClient;
use crate::walked::WalkedDirectories;

/// The largest write in one request.
pub(crate) const WRITE_BYTES_MAX: usize = 1 << 20;
/// The longest target of a symbolic link and value of an extended attribute.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// All that is open, and the locks.
pub(crate) struct Server {
    pub(crate) client: Arc<Client>,
    pub(crate) inodes: Arc<Inodes>,
    pub(crate) files: Handles<File>,
    pub(crate) directories: Handles<Mutex<Listing>>,
    pub(crate) locks: Arc<Locks>,
    pub(crate) appends: AppendLocks,
    pub(crate) read_ahead: ReadAhead,
    pub(crate) layouts: Layouts,
    walked: WalkedDirectories,
    moves: Moves,
    last_lookups: LastLookups,
    second: SecondClient,
}

impl Server {
    /// `point` is the mount point.
    pub(crate) fn new(
        (client, second): (Client, SecondClient),
        (point, layouts): (PathBuf, Layouts),
    ) -> Result<Self> {
        let client = Arc::new(client);
        Ok(Self {
            inodes: Arc::new(Inodes::new(&client, point)?),
            client,
            files: Handles::default(),
            directories: Handles::default(),
            locks: Arc::default(),
            appends: AppendLocks::default(),
            read_ahead: ReadAhead::default(),
            layouts,
            walked: WalkedDirectories::default(),
            moves: Moves::default(),
            last_lookups: LastLookups::default(),
            second,
        })
    }

    /// Writes back and ends.
    pub(crate) fn unmount(&self) -> Result<()> {
        let unmounted = self.client.unmount();
        unmounted.and(self.second.unmount())
    }

    /// Carries out a request. `buffer` is the thread's, for answers of many bytes.
    pub(crate) fn serve(
        &self,
        mut request: Request,
        reply: &Reply,
        buffer: &mut Vec<u8>,
    ) -> Result {
        let request = &mut request;
        if !matches!(request.opcode, fuse::FORGET | fuse::BATCH_FORGET) {
            self.moves.confirm(request.node);
        }
        match request.opcode {
            fuse::INIT => fuse::init(request.body, WRITE_BYTES_MAX as u32).map(Outcome::Fields),
            fuse::DESTROY => Ok(Outcome::Empty), // the end of the process writes back
            fuse::LOOKUP => self.lookup(request),
            fuse::FORGET => self.forget(request),
            fuse::BATCH_FORGET => self.forget_all(request),
            fuse::GETATTR => self.attributes_of(request.node),
            fuse::SETATTR => self.set_attributes(request),
            fuse::ACCESS => self.access(request),
            fuse::READLINK => self.read_link(request, buffer),
            fuse::SYMLINK => self.make_symlink(request),
            fuse::MKNOD => self.make_node(request),
            fuse::MKDIR => self.make_directory(request),
            fuse::UNLINK => self.unlink(request),
            fuse::RMDIR => self.remove_directory(request),
            fuse::RENAME | fuse::RENAME2 => self.rename(request),
            fuse::LINK => self.link(request),
            fuse::STATFS => self.space(request),
            fuse::GETXATTR => self.attribute(request, buffer),
            fuse::SETXATTR => self.set_attribute(request),
            fuse::LISTXATTR => self.attribute_names(request, buffer),
            fuse::REMOVEXATTR => self.remove_attribute(request),
            fuse::SYNCFS => self.client.sync().map(|()| Outcome::Empty),
            fuse::CREATE => self.create(request),
            fuse::OPEN => self.open(request),
            fuse::READ => self.read(request, buffer),
            fuse::WRITE => self.write(request),
            fuse::FLUSH => self.flush(request),
            fuse::FSYNC => self.sync_file(request),
            fuse::RELEASE => self.close(request),
            fuse::FALLOCATE => self.allocate(request),
            fuse::LSEEK => self.seek(request),
            fuse::OPENDIR => self.open_directory(request),
            fuse::READDIR => self.read_directory(request),
            fuse::FSYNCDIR => self.client.sync_node(request.node, false).map(|()| Outcome::Empty),
            fuse::RELEASEDIR => self.close_directory(request),
            fuse::GETLK => self.lock_holder(request),
            fuse::SETLK | fuse::SETLKW => self.set_lock(request, reply),
            fuse::IOCTL => self.control(request),
            fuse::INTERRUPT => self.interrupt(request),
            _ => Err(Errno(libc::ENOSYS)),
        }
    }

    pub(crate) fn caller_identity(&self, request: &Request) -> Identity<'_> {
        self.client.identity(request.caller)
    }

    fn lookup(&self, request: &mut Request) -> Result {
        let (parent, name, thread) = (request.node, request.body.name()?, request.caller.pid);
        let before = self.walked.find(parent, name);
        let wanted = if before.is_some() { ACCESS_ATTRIBUTES } else { ALL_ATTRIBUTES };
        let looked_up = self.client.lookup(parent, name, wanted, &self.caller_identity(request));
        let (node, mut found) = looked_up.inspect_err(|_| {
            self.last_lookups.note(thread, (parent, name), None, is_renaming);
        })?;
        match before {
            // Its times, size and links are those of an earlier look, as the kernel's own would be.
            Some(before) if before.ino == found.ino && found.is_directory() => {
                let Attributes { mode, uid, gid, .. } = found;
                found = Attributes { mode, uid, gid, ..before };
            }
            Some(_) => {
                found =
                    self.client.attributes(node).inspect_err(|_| self.client.forget(node, 1))?;
                self.walked.note(parent, name, &found);
            }
            None if found.is_directory() => self.walked.note(parent, name, &found),
            None => {}
        }
        if self.last_lookups.note(thread, (parent, name), Some(&found), is_renaming) {
            self.client.forget(node, 1);
            return Err(Errno(libc::ESTALE));
        }
        let number = match found.is_directory() {
            true => self.moves.assign_number((found.ino, node), (parent, name), thread),
            false => 0,
        };
        entry((node + number, found))
    }

    fn forget(&self, request: &mut Request) -> Result {
        self.client.forget(request.node, request.body.u64()?);
        Ok(Outcome::NoReply)
    }

    fn forget_all(&self, request: &mut Request) -> Result {
        let body = &mut request.body;
        let (count, _) = (body.u32()?, body.u32()?);
        for _ in 0..count {
            let (node, references) = (body.u64()?, body.u64()?);
            self.client.forget(node, references);
        }
        Ok(Outcome::NoReply)
    }

    fn attributes_of(&self, node: u64) -> Result {
        let found = self.client.attributes(node)?;
        Ok(Outcome::Fields(Answer::fresh_attributes(&found)))
    }

    fn read_link(&self, request: &Request, buffer: &mut Vec<u8>) -> Result {
        buffer.resize(TEXT_BYTES_MAX, 0);
        let length = self.client.read_link(request.node, buffer, &self.caller_identity(request))?;
        Ok(Outcome::Buffer(length))
    }

    fn make_symlink(&self, request: &mut Request) -> Result {
        let (name, target) = (request.body.name()?, request.body.name()?);
        entry(self.client.make_symlink(
            request.node,
            name,
            target,
            &self.caller_identity(request),
        )?)
    }

    fn make_node(&self, request: &mut Request) -> Result {
        let (mode, device) = (request.body.u32()?, request.body.u32()?);
        request.body.take(8)?; // the umask, which the kernel has applied
        let name = request.body.name()?;
        let who = self.caller_identity(request);
        if mode & libc::S_IFMT != libc::S_IFREG {
            return entry(self.client.make_node(request.node, name, (mode, device), &who)?);
        }
        // `ceph_ll_mknod` would give this node the right to write. Each look of another node then waits until the
        // metadata server has written to its journal, at its next tick, that the right is gone.
        let asked = (mode, libc::O_CREAT | libc::O_EXCL | libc::O_RDONLY);
        let (_file, node, found) = self.client.create(request.node, name, asked, &who)?;
        self.set_layout_of_file(name, node);
        entry((node, found))
    }

    fn make_directory(&self, request: &mut Request) -> Result {
        let (mode, _) = (request.body.u32()?, request.body.u32()?);
        let name = request.body.name()?;
        let who = self.caller_identity(request);
        let (node, found) = self.client.make_directory(request.node, name, mode, &who)?;
        self.set_layout_of_directory(name, node);
        self.moves.note(found.ino, (request.node, name));
        entry((node, found))
    }

    fn unlink(&self, request: &mut Request) -> Result {
        let name = request.body.name()?;
        self.client.unlink(request.node, name, &self.caller_identity(request))?;
        Ok(Outcome::Empty)
    }

    fn remove_directory(&self, request: &mut Request) -> Result {
        let name = request.body.name()?;
        self.client.remove_directory(request.node, name, &self.caller_identity(request))?;
        Ok(Outcome::Empty)
    }

    fn rename(&self, request: &mut Request) -> Result {
        let body = &mut request.body;
        let parent = body.u64()?;
        if request.opcode == fuse::RENAME2 {
            let (flags, _) = (body.u32()?, body.u32()?);
            if flags != 0 {
                return Err(Errno(libc::EINVAL)); // libcephfs has no flags
            }
        }
        let (name, new_name) = (body.name()?, body.name()?);
        let is_same_directory = node_of(parent) == node_of(request.node);
        if is_same_directory && name == new_name {
            return Ok(Outcome::Empty); // libcephfs would forget the name
        }
        let who = self.caller_identity(request);
        if self.has_other_names(parent, new_name, &who) {
            let (from, to) = (self.client.ino(request.node)?, self.client.ino(parent)?);
            if let Some(renamed) = self.second.rename((from, name), (to, new_name), &who) {
                return renamed.map(|()| Outcome::Empty);
            }
        }
        self.client.rename((request.node, name), (parent, new_name), &who)?;
        if let Some(moved) = self.walked.find(request.node, name) {
            self.moves.note(moved.ino, (parent, new_name));
        }
        if !is_same_directory {
            // The answer of a rename has the times and the links of the new directory only (Ceph 16.2.15).
            self.client.refresh_directory(request.node).ok(); // the rename is done
        }
        Ok(Outcome::Empty)
    }

    /// Whether there is such a file, and it has other names.
    fn has_other_names(&self, parent: u64, name: &CStr, who: &Identity) -> bool {
        let Ok((node, found)) = self.client.lookup(parent, name, LINKS_ATTRIBUTES, who) else {
            return false;
        };
        self.client.forget(node, 1);
        !found.is_directory() && found.nlink > 1
    }

    fn link(&self, request: &mut Request) -> Result {
        let node = request.body.u64()?;
        let name = request.body.name()?;
        entry(self.client.link(node, request.node, name, &self.caller_identity(request))?)
    }

    fn space(&self, request: &Request) -> Result {
        let found = self.client.space(request.node)?;
        let mut answer = Answer::default();
        answer.u64(found.f_blocks).u64(found.f_bfree).u64(found.f_bavail);
        answer.u64(found.f_files).u64(found.f_ffree).u32(found.f_bsize as u32);
        answer.u32(found.f_namemax as u32).u32(found.f_frsize as u32);
        answer.zeros(28);
        Ok(Outcome::Fields(answer))
    }

    fn attribute(&self, request: &mut Request, buffer: &mut Vec<u8>) -> Result {
        let (size, _) = (request.body.u32()?, request.body.u32()?);
        let name = request.body.name()?;
        buffer.resize((size as usize).min(TEXT_BYTES_MAX), 0);
        let length =
            self.client.attribute(request.node, name, buffer, &self.caller_identity(request))?;
        Ok(text(size, length))
    }

    fn attribute_names(&self, request: &mut Request, buffer: &mut Vec<u8>) -> Result {
        let size = request.body.u32()?;
        buffer.resize((size as usize).min(TEXT_BYTES_MAX), 0);
        let mut length =
            self.client.attribute_names(request.node, buffer, &self.caller_identity(request))?;
        if (request.node == fuse::ROOT || self.inodes.lost.is_any()) && size > 0 {
            length = without_announcements(&mut buffer[..length]);
        }
        Ok(text(size, length))
    }

    fn set_attribute(&self, request: &mut Request) -> Result {
        let body = &mut request.body;
        let (size, flags) = (body.u32()?, body.u32()?);
        let name = body.name()?;
        let value = body.take(size as usize)?;
        if request.node == fuse::ROOT && name == LOST_GROUPS_ATTRIBUTE {
            let losses = Losses::parse(value).map_err(|_| Errno(libc::EINVAL))?;
            self.inodes.lost.add(losses);
            return Ok(Outcome::Empty);
        }
        let who = self.caller_identity(request);
        self.client.set_attribute(request.node, (name, value), flags.cast_signed(), &who)?;
        Ok(Outcome::Empty)
    }

    fn remove_attribute(&self, request: &mut Request) -> Result {
        let name = request.body.name()?;
        self.client.remove_attribute(request.node, name, &self.caller_identity(request))?;
        Ok(Outcome::Empty)
    }
}

fn entry((node, attributes): (u64, Attributes)) -> Result {
    Ok(Outcome::Fields(Answer::entry(node, &attributes)))
}

/// The answer with a text, or with its length alone where the caller has no room.
fn text(room: u32, length: usize) -> Outcome {
    if room > 0 {
        return Outcome::Buffer(length);
    }
    let mut answer = Answer::default();
    answer.u32(u32::try_from(length).unwrap_or(u32::MAX)).u32(0);
    Outcome::Fields(answer)
}
