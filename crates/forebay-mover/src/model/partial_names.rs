//! Names of partial files and directories: `.forebay-TAG-NUMBER.part` and `.forebay-TAG-NUMBER.dir.part`.

use std::path::{Path, PathBuf};

use forebay_host::files::parent_of;

use crate::model::item::Item;

pub(crate) const PREFIX: &str = ".forebay-";

/// Temporary name of the entry with this number on its way to `target`; `tag` keeps two stagings apart.
pub(crate) fn temporary(target: &Path, tag: &str, id: i64) -> PathBuf {
    let directory = parent_of(target);
    directory.join(format!(".forebay-{tag}-{id}.part"))
}

pub(crate) fn is_part(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.starts_with(PREFIX.as_bytes()) && name.ends_with(b".part")
}

/// For a partial file or directory.
pub(crate) fn not_removed(error: &forebay_host::Error) -> String {
    format!("what was half done could not be removed: {}", error.source.kind())
}

/// The name under which the directory with this number is filled on its way to `target`.
pub(crate) fn staging_dir_name(target: &Path, tag: &str, directory: i64) -> PathBuf {
    let parent = parent_of(target);
    parent.join(format!(".forebay-{tag}-{directory}.dir.part"))
}

/// Where an item is written before it has its name.
pub(crate) fn part_of(item: &Item, tag: &str) -> PathBuf {
    match (&item.filled, item.target.file_name()) {
        (Some(filled), Some(name)) => filled.join(name),
        _ => temporary(&item.target, tag, item.id),
    }
}
