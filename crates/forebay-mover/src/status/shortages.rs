//! File systems without room for the files to copy, as copies found them.
//! Measures the space now, not at the time of the failure. Assumes that destinations have the same paths here.

use std::fmt;
use std::path::{Path, PathBuf};

use forebay_host::messages::counted;
use forebay_host::{files, filesystem};
use rusqlite::params;
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::Error;
use crate::journal::columns::{FAILED, PLACED, path_at};
use crate::journal::database::Journal;
use crate::model::counts::Number;
use crate::model::item::FILE;
use crate::model::reason::{FULL, OVER_QUOTA};

/// A file system on which a copy found no room, with its current space.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Shortage {
    /// Its mount point.
    #[serde(serialize_with = "files::lossy_path")]
    #[schemars(with = "PathBuf")]
    pub mounted_at: PathBuf,
    /// Files that are not complete there, for any reason.
    pub missing: Number,
    /// Bytes that an ordinary user can still write there; a quota can allow less.
    pub free_bytes: u64,
    /// Files that can still be created there; `None` if only bytes are limited.
    pub free_files: Option<u64>,
    /// A quota was exhausted.
    pub is_quota: bool,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Number { files, bytes } = self.missing;
        let place = self.mounted_at.display();
        match self.is_quota {
            true => write!(f, "the quota on {place} is used up: ")?,
            false => write!(f, "no room on {place}: ")?,
        }
        write!(
            f,
            "{bytes} bytes are needed for {} that did not arrive; {} bytes are free there",
            counted(files, "file"),
            self.free_bytes
        )?;
        match self.free_files {
            Some(free) if free < files => write!(f, ", for {}", counted(free, "file")),
            _ => Ok(()),
        }
    }
}

/// Files that are not complete in one directory.
struct NoRoom {
    directory: PathBuf,
    missing: Number,
    is_full: bool,
    is_over_quota: bool,
}

/// File systems on which a copy found no room, with the missing files and the space free now.
pub(crate) fn shortages(journal: &Journal) -> Result<Vec<Shortage>, Error> {
    let mut found: Vec<(u64, Shortage)> = Vec::new();
    let directories = missing_in_directories(journal)?;
    if !directories.iter().any(|one| one.is_full || one.is_over_quota) {
        return Ok(Vec::new());
    }
    let mut full = Vec::new();
    for one in directories {
        let Some((device, mounted_at)) = file_system_of(&one.directory) else {
            continue;
        };
        if one.is_full || one.is_over_quota {
            full.push(device);
        }
        match found.iter_mut().find(|(known, _)| *known == device) {
            Some((_, shortage)) => {
                shortage.missing.files += one.missing.files;
                shortage.missing.bytes += one.missing.bytes;
                shortage.is_quota |= one.is_over_quota;
            }
            None => {
                let space = filesystem::space(&mounted_at)?;
                let shortage = Shortage {
                    mounted_at,
                    missing: one.missing,
                    free_bytes: space.available_bytes,
                    free_files: space.available_files,
                    is_quota: one.is_over_quota,
                };
                found.push((device, shortage));
            }
        }
    }
    found.retain(|(device, _)| full.contains(device));
    Ok(found.into_iter().map(|(_, shortage)| shortage).collect())
}

fn missing_in_directories(journal: &Journal) -> Result<Vec<NoRoom>, Error> {
    journal.with(|connection| {
        let mut statement = connection.prepare_cached(&format!(
            "SELECT d.target, count(e.id), \
             coalesce(sum(CASE WHEN e.link_of IS NULL AND e.kind = {FILE} THEN e.size_bytes END), 0), \
             coalesce(max(e.remedy = ?1), 0) OR coalesce(d.remedy = ?1, 0), \
             coalesce(max(e.remedy = ?2), 0) OR coalesce(d.remedy = ?2, 0) \
             FROM directory d LEFT JOIN entry e ON e.directory = d.id AND e.state <> {PLACED} \
             WHERE e.id IS NOT NULL OR d.state = {FAILED} GROUP BY d.id",
        ))?;
        let rows = statement.query_map(params![FULL, OVER_QUOTA], |row| {
            Ok(NoRoom {
                directory: path_at(row, 0)?,
                missing: Number {
                    files: row.get(1)?,
                    bytes: row.get(2)?,
                },
                is_full: row.get(3)?,
                is_over_quota: row.get(4)?,
            })
        })?;
        rows.collect()
    })
}

/// Device number and mount point of the file system of a directory, which need not exist.
fn file_system_of(directory: &Path) -> Option<(u64, PathBuf)> {
    let real = directory.ancestors().find_map(|path| files::real_path(path).ok())?;
    let device = files::status(&real).ok()?.device;
    let is_on_it = |path: &&Path| files::status(path).is_ok_and(|status| status.device == device);
    let top = real.ancestors().take_while(is_on_it).last()?;
    Some((device, top.to_owned()))
}
