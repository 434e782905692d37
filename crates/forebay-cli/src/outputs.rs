//! What a job left where its script stages out to, file by file, to be compared.

use std::path::{Path, PathBuf};

use forebay_host::files::{self, Kind};

/// One file's name, size and content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    path: PathBuf,
    pub size_bytes: u64,
    content: blake3::Hash,
}

/// All files below these paths, sorted; a path that does not exist has none.
pub fn fingerprints(paths: &[PathBuf]) -> forebay_host::Result<Vec<Fingerprint>> {
    let mut found = Vec::new();
    for path in paths {
        collect(path, &mut found)?;
    }
    Ok(found)
}

fn collect(path: &Path, found: &mut Vec<Fingerprint>) -> forebay_host::Result<()> {
    let status = match files::status_of_name(path) {
        Err(error) if error.is_not_found() => return Ok(()),
        status => status?,
    };
    match status.kind {
        Kind::Directory => {
            for name in files::names_in(path)? {
                collect(&path.join(name), found)?;
            }
        }
        Kind::File => {
            let mut hasher = blake3::Hasher::new();
            let read = hasher.update_reader(files::open_to_read(path)?).map(|_| ());
            files::named(read, "read", path)?;
            found.push(Fingerprint {
                path: path.to_owned(),
                size_bytes: status.size_bytes,
                content: hasher.finalize(),
            });
        }
        Kind::Link | Kind::Other => {}
    }
    Ok(())
}
