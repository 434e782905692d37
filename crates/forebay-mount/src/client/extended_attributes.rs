//! Extended attributes of nodes, and those of the root, which the mounts themselves use.

use std::ffi::{CStr, c_int};

use super::{Client, Identity, counted, done};
use crate::error::Failure;

impl Client {
    /// Writes the value of an extended attribute to `buffer`, unless that is empty, and returns its length.
    pub(crate) fn attribute(
        &self,
        node: u64,
        name: &CStr,
        buffer: &mut [u8],
        who: &Identity,
    ) -> Result<usize, Failure> {
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
    ) -> Result<(), Failure> {
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

    /// Writes the value of an extended attribute of the root to `buffer`.
    pub(crate) fn root_attribute(&self, name: &CStr, buffer: &mut [u8]) -> Result<usize, Failure> {
        let (at, length) = (buffer.as_mut_ptr().cast(), buffer.len());
        // SAFETY: as above; the function writes at most `length` bytes.
        counted(unsafe {
            let functions = &self.functions;
            (functions.attribute)(self.mount, self.root, name.as_ptr(), at, length, self.of_root)
        })
    }

    /// Writes the names of all extended attributes of the root to `buffer`.
    pub(crate) fn root_attribute_names(&self, buffer: &mut [u8]) -> Result<usize, Failure> {
        let (at, length, mut found) = (buffer.as_mut_ptr().cast(), buffer.len(), 0);
        // SAFETY: as above; the function writes at most `length` bytes.
        done(unsafe {
            let (functions, found) = (&self.functions, &raw mut found);
            (functions.attribute_names)(self.mount, self.root, at, length, found, self.of_root)
        })?;
        Ok(found)
    }

    pub(crate) fn remove_root_attribute(&self, name: &CStr) -> Result<(), Failure> {
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
    ) -> Result<(), Failure> {
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
    ) -> Result<usize, Failure> {
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
    ) -> Result<(), Failure> {
        let inode = self.inode(node);
        // SAFETY: as above.
        done(unsafe {
            (self.functions.remove_attribute)(self.mount, inode, name.as_ptr(), who.permissions)
        })
    }
}
