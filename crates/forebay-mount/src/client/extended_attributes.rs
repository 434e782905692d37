//! Extended attributes of nodes, and those of the root, which the mounts themselves use.
//! Functions without an identity act as root: their caller has decided that it is allowed.

use std::ffi::{CStr, c_int};

use forebay_ceph::FileLayout;

use super::{Client, Identity, counted, done};
use crate::error::Errno;

/// The layout of a file as text (the CephFS documents, "File layouts").
pub(crate) const LAYOUT: &CStr = c"ceph.file.layout";
/// Numbers and the name of a pool.
const LAYOUT_BYTES_MAX: usize = 256;
/// A number as text.
const NUMBER_BYTES_MAX: usize = 32;

impl Client {
    /// Writes the value of an extended attribute to `buffer`, unless that is empty, and returns its length.
    pub(crate) fn attribute(
        &self,
        node: u64,
        name: &CStr,
        buffer: &mut [u8],
        who: &Identity,
    ) -> Result<usize, Errno> {
        let (at, length) = (buffer.as_mut_ptr().cast(), buffer.len());
        let inode = self.inode(node);
        // SAFETY: the kernel knows the node, the name is valid during the call, and at most `length` bytes are written.
        counted(unsafe {
            let functions = &self.functions;
            (functions.attribute)(self.mount, inode, name.as_ptr(), at, length, who.permissions)
        })
    }

    pub(crate) fn set_attribute(
        &self,
        node: u64,
        (name, value): (&CStr, &[u8]),
        flags: c_int,
        who: &Identity,
    ) -> Result<(), Errno> {
        // SAFETY: as above.
        done(unsafe {
            (self.functions.set_attribute)(
                self.mount,
                self.inode(node),
                name.as_ptr(),
                value.as_ptr().cast(),
                value.len(),
                flags,
                who.permissions,
            )
        })
    }

    /// Writes the value of an extended attribute to `buffer`, whoever may read it, and returns its length.
    pub(crate) fn own_attribute(
        &self,
        node: u64,
        name: &CStr,
        buffer: &mut [u8],
    ) -> Result<usize, Errno> {
        let (at, length) = (buffer.as_mut_ptr().cast(), buffer.len());
        let inode = self.inode(node);
        // SAFETY: as above.
        counted(unsafe {
            let read = self.functions.attribute;
            read(self.mount, inode, name.as_ptr(), at, length, self.of_root)
        })
    }

    /// Sets an extended attribute of ours.
    pub(crate) fn set_own_attribute(
        &self,
        node: u64,
        name: &CStr,
        value: &[u8],
    ) -> Result<(), Errno> {
        let (at, length) = (value.as_ptr().cast(), value.len());
        let inode = self.inode(node);
        // SAFETY: as above; the function reads `length` bytes.
        done(unsafe {
            let set = self.functions.set_attribute;
            set(self.mount, inode, name.as_ptr(), at, length, 0, self.of_root)
        })
    }

    /// How a file is distributed. The client knows it without a message to a server.
    pub(crate) fn layout(&self, node: u64) -> Result<FileLayout, Errno> {
        let mut buffer = [0; LAYOUT_BYTES_MAX];
        let length = self.own_attribute(node, LAYOUT, &mut buffer)?;
        let text = buffer.get(..length).unwrap_or_default();
        FileLayout::parse(&String::from_utf8_lossy(text)).map_err(|_| Errno(libc::EIO))
    }

    /// Asks the metadata server for all attributes of a directory: libcephfs does so each time for this one.
    pub(crate) fn refresh_directory(&self, node: u64) -> Result<(), Errno> {
        self.own_attribute(node, c"ceph.dir.rentries", &mut [0; NUMBER_BYTES_MAX]).map(drop)
    }

    /// Writes the value of an extended attribute of the root to `buffer`.
    pub(crate) fn root_attribute(&self, name: &CStr, buffer: &mut [u8]) -> Result<usize, Errno> {
        let (at, length) = (buffer.as_mut_ptr().cast(), buffer.len());
        // SAFETY: as above; the function writes at most `length` bytes.
        counted(unsafe {
            let functions = &self.functions;
            (functions.attribute)(self.mount, self.root, name.as_ptr(), at, length, self.of_root)
        })
    }

    /// Writes the names of all extended attributes of the root to `buffer`.
    pub(crate) fn root_attribute_names(&self, buffer: &mut [u8]) -> Result<usize, Errno> {
        let (at, length, mut found) = (buffer.as_mut_ptr().cast(), buffer.len(), 0);
        // SAFETY: as above; the function writes at most `length` bytes.
        done(unsafe {
            let (functions, found) = (&self.functions, &raw mut found);
            (functions.attribute_names)(self.mount, self.root, at, length, found, self.of_root)
        })?;
        Ok(found)
    }

    pub(crate) fn remove_root_attribute(&self, name: &CStr) -> Result<(), Errno> {
        // SAFETY: as above.
        done(unsafe {
            let remove = self.functions.remove_attribute;
            remove(self.mount, self.root, name.as_ptr(), self.of_root)
        })
    }

    pub(crate) fn set_root_attribute(
        &self,
        name: &CStr,
        value: &[u8],
        flags: c_int,
    ) -> Result<(), Errno> {
        let (name, at, length) = (name.as_ptr(), value.as_ptr().cast(), value.len());
        // SAFETY: as above.
        done(unsafe {
            let set = self.functions.set_attribute;
            set(self.mount, self.root, name, at, length, flags, self.of_root)
        })
    }

    /// Writes the names of all extended attributes to `buffer`, unless that is empty, and returns their length.
    pub(crate) fn attribute_names(
        &self,
        node: u64,
        buffer: &mut [u8],
        who: &Identity,
    ) -> Result<usize, Errno> {
        let (at, length) = (buffer.as_mut_ptr().cast(), buffer.len());
        let (mut found, inode) = (0, self.inode(node));
        // SAFETY: as above; the function writes at most `length` bytes.
        done(unsafe {
            let (functions, found) = (&self.functions, &raw mut found);
            (functions.attribute_names)(self.mount, inode, at, length, found, who.permissions)
        })?;
        Ok(found)
    }

    pub(crate) fn remove_attribute(
        &self,
        node: u64,
        name: &CStr,
        who: &Identity,
    ) -> Result<(), Errno> {
        let inode = self.inode(node);
        // SAFETY: as above.
        done(unsafe {
            (self.functions.remove_attribute)(self.mount, inode, name.as_ptr(), who.permissions)
        })
    }
}
