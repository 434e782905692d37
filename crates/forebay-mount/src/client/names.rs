//! Names: what a client of libcephfs makes, links, renames and removes.
//! Assumes that the kernel names only nodes that it looked up and has not forgotten.

use std::ffi::{CStr, c_char};

use forebay_ceph::{Attributes, InodeNumber, Permissions};

use super::{ALL_ATTRIBUTES, Client, Identity, counted, done};
use crate::error::Errno;

impl Client {
    pub(crate) fn make_node(
        &self,
        parent: u64,
        name: &CStr,
        (mode, device): (u32, u32),
        who: &Identity,
    ) -> Result<(u64, Attributes), Errno> {
        self.entry(|inode, attributes| {
            // SAFETY: the kernel knows the nodes, and the pointers are valid during the call.
            unsafe {
                (self.functions.make_node)(
                    self.mount,
                    self.inode(parent),
                    name.as_ptr(),
                    mode,
                    device.into(),
                    inode,
                    attributes,
                    ALL_ATTRIBUTES,
                    0,
                    who.permissions,
                )
            }
        })
    }

    pub(crate) fn make_directory(
        &self,
        parent: u64,
        name: &CStr,
        mode: u32,
        who: &Identity,
    ) -> Result<(u64, Attributes), Errno> {
        self.entry(|inode, attributes| {
            // SAFETY: as above.
            unsafe {
                (self.functions.make_directory)(
                    self.mount,
                    self.inode(parent),
                    name.as_ptr(),
                    mode,
                    inode,
                    attributes,
                    ALL_ATTRIBUTES,
                    0,
                    who.permissions,
                )
            }
        })
    }

    pub(crate) fn make_symlink(
        &self,
        parent: u64,
        name: &CStr,
        target: &CStr,
        who: &Identity,
    ) -> Result<(u64, Attributes), Errno> {
        self.entry(|inode, attributes| {
            // SAFETY: as above.
            unsafe {
                (self.functions.make_symlink)(
                    self.mount,
                    self.inode(parent),
                    name.as_ptr(),
                    target.as_ptr(),
                    inode,
                    attributes,
                    ALL_ATTRIBUTES,
                    0,
                    who.permissions,
                )
            }
        })
    }

    pub(crate) fn link(
        &self,
        node: u64,
        parent: u64,
        name: &CStr,
        who: &Identity,
    ) -> Result<(u64, Attributes), Errno> {
        let (inode, parent) = (self.inode(node), self.inode(parent));
        // SAFETY: as above.
        done(unsafe {
            (self.functions.link)(self.mount, inode, parent, name.as_ptr(), who.permissions)
        })?;
        let attributes = self.attributes(node)?;
        let number = InodeNumber { ino: attributes.ino, snapshot: InodeNumber::NO_SNAPSHOT };
        // The new name is one more reference of the kernel.
        // SAFETY: the mount is alive.
        let same = unsafe { (self.functions.inode)(self.mount, number) };
        if same == inode { Ok((node, attributes)) } else { Err(Errno(libc::ESTALE)) }
    }

    /// Renames. After a failure libcephfs may keep the mark that the new name is being renamed: so it does if another node
    /// renamed the old name first (Ceph 16.2.15). Every later use of the new name waits until the mark is gone. A second
    /// rename, which the metadata server refuses, removes it.
    pub(crate) fn rename(
        &self,
        from: (u64, &CStr),
        to: (u64, &CStr),
        who: &Identity,
    ) -> Result<(), Errno> {
        let renamed = self.rename_as(from, to, who.permissions);
        if renamed.is_err() {
            // libcephfs finds the directory itself by this name, the server finds nothing.
            self.rename_as((to.0, c"."), to, self.of_root).ok();
        }
        renamed
    }

    fn rename_as(
        &self,
        (parent, name): (u64, &CStr),
        (new_parent, new_name): (u64, &CStr),
        who: Permissions,
    ) -> Result<(), Errno> {
        let (parent, new_parent) = (self.inode(parent), self.inode(new_parent));
        // SAFETY: as above.
        done(unsafe {
            (self.functions.rename)(
                self.mount,
                parent,
                name.as_ptr(),
                new_parent,
                new_name.as_ptr(),
                who,
            )
        })
    }

    pub(crate) fn unlink(&self, parent: u64, name: &CStr, who: &Identity) -> Result<(), Errno> {
        let parent = self.inode(parent);
        // SAFETY: as above.
        done(unsafe { (self.functions.unlink)(self.mount, parent, name.as_ptr(), who.permissions) })
    }

    pub(crate) fn remove_directory(
        &self,
        parent: u64,
        name: &CStr,
        who: &Identity,
    ) -> Result<(), Errno> {
        let parent = self.inode(parent);
        // SAFETY: as above.
        done(unsafe {
            (self.functions.remove_directory)(self.mount, parent, name.as_ptr(), who.permissions)
        })
    }

    /// Writes the target of a symbolic link to `buffer` and returns its length.
    pub(crate) fn read_link(
        &self,
        node: u64,
        buffer: &mut [u8],
        who: &Identity,
    ) -> Result<usize, Errno> {
        let (at, length) = (buffer.as_mut_ptr().cast::<c_char>(), buffer.len());
        // SAFETY: as above; the function writes at most `length` bytes.
        counted(unsafe {
            (self.functions.read_link)(self.mount, self.inode(node), at, length, who.permissions)
        })
    }
}
