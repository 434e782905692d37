//! The destination of one file: whether it is unchanged, its partial file, its final name.
//! Never replaces a directory, nor a file that `keep_changed` protects. Without `checksum`, a file with the size and
//! modification time of its source counts as unchanged, unless one of them is in memory: then the contents decide.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use forebay_host::files::{self, parent_of};
use forebay_host::files::{Kind, Status};

use crate::copy::context::{CopyContext, CopyEvent};
use crate::copy::durability::Syncing;

use crate::model::failure::ALREADY_EXISTS;
use crate::model::item::Item;
use crate::model::options::KeepChanged;
use crate::model::partial_names::part_of;
use crate::model::reason::Reason;
use crate::model::state::State;
use crate::model::version::{is_same, modified_ns};
use crate::status::undelivered::is_same_file;

/// A file system's clock may be so much behind ours.
const CLOCK_TICK_MS: i64 = 5;

/// Mode of a file that nobody else may look into while it is written.
pub(crate) const OWNER_ONLY_MODE: u32 = 0o600;

impl CopyContext<'_> {
    /// Replaces the target in one step; removes what we wrote if that fails.
    pub(crate) fn put_in_place(&self, temporary: &Path, item: &Item) -> Result<(), Reason> {
        let target = &item.target;
        let renamed = self.check_may_replace(item).and_then(|()| {
            files::rename(temporary, target)
                .map_err(|error| target_status(target).err().unwrap_or_else(|| error.into()))
        });
        if renamed.is_err() {
            self.remove_best_effort(temporary);
        }
        renamed
    }

    /// Checks that the target is not one of those that [`KeepChanged`] keeps.
    pub(crate) fn check_may_replace(&self, item: &Item) -> Result<(), Reason> {
        let Some(KeepChanged { after_unix_ms, newer_only }) = self.options.keep_changed else {
            return Ok(());
        };
        let Some(existing) = target_status(&item.target)? else {
            return Ok(());
        };
        let (seconds, nanoseconds) = existing.changed;
        let changed_ms = seconds.saturating_mul(1000).saturating_add(nanoseconds / 1_000_000);
        let is_later = u64::try_from(changed_ms).is_ok_and(|changed_ms| changed_ms > after_unix_ms);
        // We may have replaced another name of the same file just now, which changes its inode.
        let is_ours_perhaps = changed_ms + CLOCK_TICK_MS >= self.began_unix_ms;
        if !is_later
            || ((newer_only || is_ours_perhaps) && modified_ns(&existing) <= item.modified_ns)
        {
            return Ok(());
        }
        Err(Reason {
            errno: Some(ALREADY_EXISTS),
            ..Reason::new(
                &format!("{} is newer than what is staged, and is kept", item.target.display()),
                "replace it with --overwrite-newer, or stage elsewhere with forebay clean JOB --to DIR",
            )
        })
    }

    /// Checks that the source is still a file, of an acceptable version, with a correct size.
    pub(crate) fn check_source(
        &self,
        item: &Item,
        source: &File,
        status: &Status,
    ) -> Result<(), Reason> {
        if status.kind != Kind::File {
            return Err(Reason::new(
                "it is not a file any more: something else has taken its name",
                "stage again",
            ));
        }
        // Files of /proc and /sys have size 0 but contain data.
        if status.size_bytes == 0 && source.read_at(&mut [0], 0).unwrap_or(0) > 0 {
            return Err(Reason::new("it holds more than its size says", ""));
        }
        self.check_version(item, status)
    }

    /// Checks that the source has the planned version, if that is required.
    pub(crate) fn check_version(&self, item: &Item, status: &Status) -> Result<(), Reason> {
        let found = (status.size_bytes, modified_ns(status));
        if self.options.as_planned && found != (item.size_bytes, item.modified_ns) {
            return Err(Reason::changed("it was changed since it was planned"));
        }
        Ok(())
    }

    /// Returns the size if stat alone shows that the destination is unchanged. That is so for most
    /// files of a repeated staging.
    pub(crate) fn repair_if_unchanged_by_stat(
        &self,
        item: &Item,
        syncing: &mut Syncing,
    ) -> Result<Option<u64>, Reason> {
        if self.options.checksum || self.is_fresh(item) {
            return Ok(None);
        }
        let Some(existing) = target_status(&item.target)? else {
            return Ok(None);
        };
        let status = if item.is_named {
            files::status(&item.source)?
        } else {
            files::status_of_name(&item.source)?
        };
        if status.kind != Kind::File
            || status.size_bytes == 0
            || !is_same(&existing, &status)
            || self.compares_contents(item, &existing, &status)
        {
            return Ok(None);
        }
        check_not_itself(item, &existing, &status)?;
        self.repair_metadata(item, &status, &existing)?;
        syncing.there(item)?;
        (self.on)(CopyEvent::Skipped(status.size_bytes));
        Ok(Some(status.size_bytes))
    }

    /// Is the destination unchanged? Corrects its mode and owner, and with `checksum` its attributes.
    pub(crate) fn repair_if_unchanged(
        &self,
        item: &Item,
        source: &File,
        status: &Status,
        block: &mut [u8],
    ) -> Result<bool, Reason> {
        let Some(existing) = target_status(&item.target)? else {
            return Ok(false);
        };
        if !is_same(&existing, status) {
            return Ok(false);
        }
        check_not_itself(item, &existing, status)?;
        if self.compares_contents(item, &existing, status)
            && !self.has_same_content(source, item, block)?
        {
            return Ok(false);
        }
        if self.options.checksum {
            self.repair_extended_attributes(source, item)?;
        }
        self.repair_metadata(item, status, &existing)?;
        Ok(true)
    }

    fn compares_contents(&self, item: &Item, existing: &Status, status: &Status) -> bool {
        self.options.checksum
            || self.memory.has(&item.source, status)
            || self.memory.has(&item.target, existing)
    }

    /// Creates the directories above a file, and makes their names survive a power failure.
    pub(crate) fn make_parents(&self, temporary: &Path) -> Result<(), Reason> {
        let made = files::make_directories(parent_of(temporary), 0o777)?;
        if self.options.syncs() {
            files::sync_names(&made)?;
        }
        Ok(())
    }

    /// Creates a partial file. An existing one is a leftover of a killed run.
    pub(crate) fn make_part(&self, temporary: &Path, mode: u32) -> Result<File, Reason> {
        match files::make_file(temporary, mode) {
            Err(error) if error.is_not_found() => {
                self.make_parents(temporary)?;
            }
            Err(error) if error.already_exists() => files::remove_file(temporary)?,
            made => return Ok(made?),
        }
        Ok(files::make_file(temporary, mode)?)
    }

    /// Removes the leftover partial file of an item whose destination is complete, or that failed.
    pub(crate) fn drop_part(&self, item: &Item) {
        if item.state == State::Planned {
            return; // it was not begun
        }
        let part = part_of(item, &self.options.tag);
        if files::status_of_name(&part).is_ok() {
            self.remove_best_effort(&part);
        }
    }
}

fn check_not_itself(item: &Item, existing: &Status, status: &Status) -> Result<(), Reason> {
    if !is_same_file(&item.source, &item.target, existing, status) {
        return Ok(());
    }
    if item.source == item.target {
        return Err(Reason::new("source and target are the same file", "choose another target"));
    }
    Err(Reason::new(
        &format!("{} leads back to it", item.target.display()),
        "choose a target that no link leads out of",
    ))
}

/// Status of the destination; `None` if it does not exist. Fails if it is a directory.
pub(crate) fn target_status(target: &Path) -> Result<Option<Status>, Reason> {
    match files::status_of_name(target) {
        Err(error) if error.is_not_found() => Ok(None),
        Ok(status) if status.kind == Kind::Directory => Err(Reason {
            errno: Some(libc::EISDIR),
            ..Reason::new(
                &format!("a directory stands at its place, {}", target.display()),
                "move that directory away or choose another target",
            )
        }),
        found => Ok(Some(found?)),
    }
}
