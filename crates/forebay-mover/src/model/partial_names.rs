//! Names of partial files and directories: `.forebay-TAG-NUMBER.part` and `.forebay-TAG-NUMBER.dir.part`.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use forebay_host::files::parent_of;

use crate::model::item::Item;

pub(crate) const PREFIX: &str = ".forebay-";

/// Temporary name of the entry `id` next to `target`; `tag` keeps concurrent stagings apart.
pub(crate) fn temporary(target: &Path, tag: &str, id: i64) -> PathBuf {
    in_directory(parent_of(target), tag, id)
}

/// Name of a partial file in this directory.
pub(crate) fn in_directory(directory: &Path, tag: &str, name: impl Display) -> PathBuf {
    directory.join(format!("{PREFIX}{tag}-{name}.part"))
}

pub(crate) fn is_part(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.starts_with(PREFIX.as_bytes()) && name.ends_with(b".part")
}

/// Message for a partial file or directory that cannot be removed.
pub(crate) fn not_removed(error: &forebay_host::Error) -> String {
    format!("what was half done could not be removed: {}", error.source.kind())
}

/// Name of the partial directory next to `target`.
pub(crate) fn staging_dir_name(target: &Path, tag: &str, directory: i64) -> PathBuf {
    let parent = parent_of(target);
    parent.join(format!("{PREFIX}{tag}-{directory}.dir.part"))
}

/// Path of the partial file of an item.
pub(crate) fn part_of(item: &Item, tag: &str) -> PathBuf {
    match (&item.filled, item.target.file_name()) {
        (Some(filled), Some(name)) => filled.join(name),
        _ => temporary(&item.target, tag, item.id),
    }
}
