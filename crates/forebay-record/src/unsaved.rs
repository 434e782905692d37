//! The list of files that exist only in an allocation.
//! Assumes a caller that sees sources and destinations as the job did. Never copies or removes such a file.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use forebay_host::files;
use forebay_mover::{Journal, Undelivered};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{Error, RecordFile};

/// Number of files named in a message; the list names all.
const NAMED: usize = 10;

/// Files to be staged out that are not at their destinations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnsavedFiles {
    /// Number of such files and of other missing sources.
    pub files: u64,
    /// Their bytes, as far as known.
    pub bytes: u64,
    /// The path of the complete list, also if it could not be written.
    #[serde(serialize_with = "forebay_host::files::lossy_path")]
    #[schemars(with = "PathBuf")]
    pub list: PathBuf,
    /// The paths of the first files.
    #[serde(serialize_with = "forebay_host::files::lossy_paths")]
    #[schemars(with = "Vec<PathBuf>")]
    pub first: Vec<PathBuf>,
}

impl RecordFile {
    /// The path of the list, next to the record: `ID-PID@HOST.FILES-NOT-SAFE`.
    pub fn unsaved_list(&self) -> PathBuf {
        self.path().with_extension("FILES-NOT-SAFE")
    }

    /// Number of files in the list; none if there is no list.
    pub fn unsaved_count(&self) -> Option<u64> {
        let list = files::read_lossy(&self.unsaved_list()).ok()?;
        let named = list.lines().filter(|line| !line.starts_with('#'));
        Some(named.count() as u64)
    }

    /// Writes the list, or removes it if no file is missing. `reason` applies to files without their own.
    ///
    /// # Errors
    /// If the journal cannot be read. The inner result says whether the list was written.
    pub fn list_unsaved(
        &self,
        journal: &Journal,
        root: Option<&Path>,
        reason: Option<&str>,
    ) -> Result<(UnsavedFiles, forebay_host::Result<()>), Error> {
        let mut found = UnsavedFiles { list: self.unsaved_list(), ..UnsavedFiles::default() };
        let mut text = self.header();
        let outside = root.map(|root| self.record.path_from_outside(root)).unwrap_or_default();
        forebay_mover::undelivered(journal, &|| true, |missing| {
            let inner = root.and_then(|root| missing.source.strip_prefix(root).ok());
            let location = inner.map_or_else(|| missing.source.clone(), |path| outside.join(path));
            append_line(&mut text, &missing, &location, reason);
            found.files += 1;
            found.bytes += missing.bytes;
            if found.first.len() < NAMED {
                found.first.push(location);
            }
        })?;
        let done = if found.files == 0 {
            self.remove_unsaved_list()
        } else {
            files::write_atomically(&found.list, &temporary(&found.list), &text)
        };
        Ok((found, done))
    }

    /// Removes the list, since no file is missing.
    pub(crate) fn remove_unsaved_list(&self) -> forebay_host::Result<()> {
        let list = self.unsaved_list();
        for path in [temporary(&list), list] {
            files::remove_if_present(&path)?;
        }
        Ok(())
    }

    fn header(&self) -> Vec<u8> {
        let (id, host) = (&self.record.id, &self.record.runner.host);
        format!(
            "# Not safe: in the allocation of job {id} on {host} only. Stage them out there: forebay clean {id}\n\
             # bytes, where it is, where it is to go, why it is not there; - where that is not known; \\xNN is written\n\
             # for a character that would break the line\n"
        )
        .into_bytes()
    }
}

/// The path of the list while it is written.
fn temporary(list: &Path) -> PathBuf {
    list.with_extension("FILES-NOT-SAFE.fresh-list")
}

fn append_line(text: &mut Vec<u8>, missing: &Undelivered, location: &Path, reason: Option<&str>) {
    text.extend(missing.bytes.to_string().bytes());
    let target = missing.target.as_deref().map(Path::as_os_str);
    let reason = missing.reason.as_deref().or(reason).map(OsStr::new);
    for field in [Some(location.as_os_str()), target, reason] {
        text.push(b'\t');
        for &byte in field.unwrap_or(OsStr::new("-")).as_bytes() {
            if byte < b' ' || byte == b'\\' || byte == 0x7f {
                text.extend(format!("\\x{byte:02x}").bytes());
            } else {
                text.push(byte);
            }
        }
    }
    text.push(b'\n');
}
