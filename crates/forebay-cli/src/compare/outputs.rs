//! Fingerprints the files at the destinations of a job, to compare them.
//! Assumes that a file whose change time stayed the same was not written.
//! Never follows or compares a symbolic link: the caller resolves a destination that is one.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use forebay_host::files::{self, Kind, Status};

/// Path below the destination, size and content hash of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    name: PathBuf,
    pub size_bytes: u64,
    content: blake3::Hash,
}

/// Fingerprints of the files below these paths that changed since `before`, sorted.
pub fn fingerprints(paths: &[PathBuf], before: &Times) -> forebay_host::Result<Vec<Fingerprint>> {
    let mut found = Vec::new();
    for root in paths {
        each_file(root, &mut |path, status| {
            if before.get(path) == Some(&status.changed) {
                return Ok(());
            }
            let mut hasher = blake3::Hasher::new();
            let read = hasher.update_reader(files::open_to_read(path)?).map(|_| ());
            files::with_path(read, "read", path)?;
            found.push(Fingerprint {
                name: path.strip_prefix(root).unwrap_or(path).to_owned(),
                size_bytes: status.size_bytes,
                content: hasher.finalize(),
            });
            Ok(())
        })?;
    }
    Ok(found)
}

/// The change time of each file: seconds, nanoseconds.
pub type Times = HashMap<PathBuf, (i64, i64)>;

/// The change times of all files below these paths.
pub fn times(paths: &[PathBuf]) -> forebay_host::Result<Times> {
    let mut found = HashMap::new();
    for root in paths {
        each_file(root, &mut |path, status| {
            found.insert(path.to_owned(), status.changed);
            Ok(())
        })?;
    }
    Ok(found)
}

type Visit<'a> = &'a mut dyn FnMut(&Path, &Status) -> forebay_host::Result<()>;

fn each_file(path: &Path, visit: Visit) -> forebay_host::Result<()> {
    let status = match files::status_of_name(path) {
        Err(error) if error.is_not_found() => return Ok(()),
        status => status?,
    };
    match status.kind {
        Kind::Directory => {
            for name in files::names_in(path)? {
                each_file(&path.join(name), visit)?;
            }
            Ok(())
        }
        Kind::File => visit(path, &status),
        Kind::Link | Kind::Other => Ok(()),
    }
}
