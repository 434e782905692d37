//! Copies mode, owner, times and extended attributes, access control lists among them.

use std::ffi::CStr;
use std::fs::File;
use std::path::Path;

use forebay_host::files;
use forebay_host::files::{ExtendedAttribute, Status};

use crate::copy::context::Run;

use crate::model::item::Item;
use crate::model::reason::Reason;

/// Extended attributes that belong to the file system or to the machine, not to the file.
const NOT_THE_FILES: [&[u8]; 8] = [
    b"lustre.",
    b"trusted.lov",
    b"trusted.overlay.",
    b"security.selinux",
    b"security.ima",
    b"security.evm",
    b"system.nfs4_acl",
    b"ceph.",
];

/// Those that go from a file that is there already if its source has them not: the user's own, and the list that
/// says who may open it.
const TAKEN_AWAY: [&[u8]; 2] = [b"user.", b"system.posix_acl_access"];

fn begins_as(name: &CStr, begins: &[&[u8]]) -> bool {
    begins
        .iter()
        .any(|begin| name.to_bytes().starts_with(begin))
}

/// Those that belong to the file.
fn own(file: &File, path: &Path) -> Result<Vec<ExtendedAttribute>, Reason> {
    let mut found = files::extended_attributes(file, path)?;
    found.retain(|(name, _)| !begins_as(name, &NOT_THE_FILES));
    Ok(found)
}

impl Run<'_> {
    /// Gives a file or directory what its source has beside its content. Owner before mode, since giving it
    /// away clears bits of that; mode after the extended attributes, which a file closed to us does not
    /// take; times last.
    pub(crate) fn give_attributes(
        &self,
        source: &File,
        target: &File,
        paths: (&Path, &Path),
        status: &Status,
    ) -> Result<(), Reason> {
        let (source_path, target_path) = paths;
        let standing = files::status_of(target, target_path)?;
        let mut is_dressed = standing.mode == status.mode;
        if let Some((owner, group)) = self.owner.given(status)
            && !self.owner.is_kept(status, &standing)
        {
            is_dressed = false; // that may clear bits of the mode
            if files::set_owner_of(target, target_path, owner, group).is_err() {
                self.note("the owner could not be kept", source_path);
            }
        }
        if self.give_extended_attributes(source, target, paths)? {
            is_dressed = false; // an access control list has a mode in it
        }
        if !is_dressed {
            files::set_mode_of(target, target_path, status.mode)?;
        }
        files::set_times_of(target, target_path, status)?;
        Ok(())
    }

    /// Mode and owner of a file that is there already, if they are not those of its source.
    pub(crate) fn mend(
        &self,
        item: &Item,
        status: &Status,
        standing: &Status,
    ) -> Result<(), Reason> {
        let gives = !self.owner.is_kept(status, standing);
        if !gives && standing.mode == status.mode {
            return Ok(());
        }
        if let Some((owner, group)) = self.owner.given(status).filter(|_| gives)
            && files::set_owner_of_name(&item.target, owner, group).is_err()
        {
            self.note("the owner could not be kept", &item.source);
        }
        Ok(files::set_mode(&item.target, status.mode)?)
    }

    /// Gives a file or directory those of its source; what its file system does not hold is noted.
    pub(crate) fn give_extended_attributes(
        &self,
        source: &File,
        target: &File,
        (source_path, target_path): (&Path, &Path),
    ) -> Result<bool, Reason> {
        let attributes = own(source, source_path)?;
        for attribute in &attributes {
            self.give(attribute, target, (source_path, target_path));
        }
        Ok(!attributes.is_empty())
    }

    pub(crate) fn give(
        &self,
        (name, value): &ExtendedAttribute,
        target: &File,
        paths: (&Path, &Path),
    ) {
        let (source_path, target_path) = paths;
        if let Err(error) = files::set_extended_attribute(target, target_path, name, value) {
            let (name, why) = (name.to_string_lossy(), error.source.kind());
            self.note(
                &format!("the extended attribute {name} could not be kept: {why}"),
                source_path,
            );
        }
    }

    /// Makes those of a file that is there already what its source has.
    pub(crate) fn mend_extended_attributes(
        &self,
        source: &File,
        item: &Item,
    ) -> Result<(), Reason> {
        let wanted = own(source, &item.source)?;
        let target = files::open_source(&item.target, false)?;
        let standing = own(&target, &item.target)?;
        for attribute in wanted.iter().filter(|one| !standing.contains(one)) {
            self.give(attribute, &target, (&item.source, &item.target));
        }
        for (name, _) in &standing {
            let is_wanted = wanted.iter().any(|(wanted, _)| wanted == name);
            if !is_wanted && begins_as(name, &TAKEN_AWAY) {
                files::remove_extended_attribute(&target, &item.target, name)?;
            }
        }
        Ok(())
    }
}
