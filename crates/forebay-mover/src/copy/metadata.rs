//! Copies mode, owner, times and extended attributes, including access control lists (ACLs).
//! Never copies attributes of the file system or the machine, such as a layout or an SELinux label.
//! An owner or attribute that the destination does not support is noted, and the file does not fail.

use std::ffi::CStr;
use std::fs::File;
use std::path::Path;

use forebay_host::files;
use forebay_host::files::{ExtendedAttribute, Status};

use crate::copy::context::CopyContext;

use crate::model::item::Item;
use crate::model::reason::{Reason, is_unsupported};
use crate::ownership::Owner;

/// Extended attributes of the file system or the machine, which Forebay does not copy.
const FILESYSTEM_OWNED_XATTRS: [&[u8]; 8] = [
    b"lustre.",
    b"trusted.lov",
    b"trusted.overlay.",
    b"security.selinux",
    b"security.ima",
    b"security.evm",
    b"system.nfs4_acl",
    b"ceph.",
];

/// Attributes that Forebay removes from an existing file if its source lacks them: those of the
/// user and the access ACL.
const REMOVED_XATTRS: [&[u8]; 2] = [b"user.", b"system.posix_acl_access"];

fn begins_as(name: &CStr, begins: &[&[u8]]) -> bool {
    begins.iter().any(|begin| name.to_bytes().starts_with(begin))
}

/// Extended attributes that belong to the file.
fn own(file: &File, path: &Path) -> Result<Vec<ExtendedAttribute>, Reason> {
    let mut found = files::extended_attributes(file, path)?;
    found.retain(|(name, _)| !begins_as(name, &FILESYSTEM_OWNED_XATTRS));
    Ok(found)
}

impl CopyContext<'_> {
    /// Copies the metadata of a file or directory. Sets the owner before the mode, since a new
    /// owner can clear mode bits. Sets the mode after extended attributes, which a read-only file
    /// rejects. Sets times last.
    pub(crate) fn copy_metadata(
        &self,
        source: &File,
        target: &File,
        paths: (&Path, &Path),
        status: &Status,
    ) -> Result<(), Reason> {
        let (source_path, target_path) = paths;
        let mut existing = files::status_of(target, target_path)?;
        let mut is_mode_known = true;
        if let Some((owner, group)) = self.owner.owner_to_set(status)
            && !self.owner.matches(status, &existing)
            && !self.owner.keeps_group_of_directory(target_path)
        {
            is_mode_known = false; // that may clear bits of the mode
            if let Err(error) = files::set_owner_of(target, target_path, owner, group) {
                self.owner_not_kept(error, source_path)?;
            }
            if Owner::mode_needs_owner(status) {
                existing = files::status_of(target, target_path)?;
            }
        }
        if self.copy_extended_attributes(source, target, paths)? {
            is_mode_known = false; // an access control list contains mode bits
        }
        let mode = self.wanted_mode(status, &existing, source_path);
        if !is_mode_known || existing.mode != mode {
            files::set_mode_of(target, target_path, mode)?;
        }
        files::set_times_of(target, target_path, status)?;
        Ok(())
    }

    /// Sets mode and owner of an existing file, if they differ from its source. Notes what only another
    /// user, who owns the file, may set.
    pub(crate) fn repair_metadata(
        &self,
        item: &Item,
        status: &Status,
        existing: &Status,
    ) -> Result<(), Reason> {
        let gives = !self.owner.matches(status, existing)
            && !self.owner.keeps_group_of_directory(&item.target);
        if !gives && existing.mode == self.owner.mode_of_copy(status, existing) {
            return Ok(());
        }
        let target = files::open_name(&item.target)?;
        self.check_here(item, &item.target, &target)?;
        let (mut now, mut is_mode_known) = (files::status_of(&target, &item.target)?, true);
        if let Some((owner, group)) = self.owner.owner_to_set(status).filter(|_| gives) {
            match files::set_owner_of_opened(&target, &item.target, owner, group) {
                Ok(()) => {
                    is_mode_known = false; // that may clear bits of the mode
                    now = files::status_of(&target, &item.target)?;
                }
                Err(error) => self.owner_not_kept(error, &item.source)?,
            }
        }
        let mode = self.wanted_mode(status, &now, &item.source);
        if (!is_mode_known || now.mode != mode)
            && let Err(error) = files::set_mode_of_opened(&target, &item.target, mode)
        {
            if !error.is_not_permitted() {
                return Err(error.into());
            }
            self.warn_once("the mode of another user's file could not be set", &item.source);
        }
        Ok(())
    }

    /// The mode of a copy. Notes a bit that it does not keep.
    fn wanted_mode(&self, status: &Status, existing: &Status, source: &Path) -> u32 {
        let mode = self.owner.mode_of_copy(status, existing);
        if status.mode & !mode != 0 {
            let text = "the set-user-ID or set-group-ID bit was not kept: the copy has another owner or group";
            self.warn_once(text, source);
        }
        mode
    }

    /// Copies extended attributes. Notes those that the file system does not support.
    pub(crate) fn copy_extended_attributes(
        &self,
        source: &File,
        target: &File,
        (source_path, target_path): (&Path, &Path),
    ) -> Result<bool, Reason> {
        let attributes = own(source, source_path)?;
        for attribute in &attributes {
            self.give(attribute, target, (source_path, target_path))?;
        }
        Ok(!attributes.is_empty())
    }

    pub(crate) fn give(
        &self,
        (name, value): &ExtendedAttribute,
        target: &File,
        paths: (&Path, &Path),
    ) -> Result<(), Reason> {
        let (source_path, target_path) = paths;
        if let Err(error) = files::set_extended_attribute(target, target_path, name, value) {
            if !is_unsupported(&error) {
                return Err(error.into());
            }
            let (name, why) = (name.to_string_lossy(), error.source.kind());
            self.warn_once(
                &format!("the extended attribute {name} could not be kept: {why}"),
                source_path,
            );
        }
        Ok(())
    }

    /// Notes an owner that this user, or the file system, cannot set.
    pub(crate) fn owner_not_kept(
        &self,
        error: forebay_host::Error,
        source: &Path,
    ) -> Result<(), Reason> {
        if !is_unsupported(&error) {
            return Err(error.into());
        }
        self.warn_once("the owner could not be kept", source);
        Ok(())
    }

    /// Makes the extended attributes of an existing file equal to those of its source.
    pub(crate) fn repair_extended_attributes(
        &self,
        source: &File,
        item: &Item,
    ) -> Result<(), Reason> {
        let wanted = own(source, &item.source)?;
        let target = files::open_source(&item.target, false)?;
        let existing = own(&target, &item.target)?;
        for attribute in wanted.iter().filter(|one| !existing.contains(one)) {
            self.give(attribute, &target, (&item.source, &item.target))?;
        }
        for (name, _) in &existing {
            let is_wanted = wanted.iter().any(|(wanted, _)| wanted == name);
            if !is_wanted && begins_as(name, &REMOVED_XATTRS) {
                files::remove_extended_attribute(&target, &item.target, name)?;
            }
        }
        Ok(())
    }
}
