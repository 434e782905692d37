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

/// Every file below these paths, sorted; a path that does not exist has none.
pub fn fingerprints(paths: &[PathBuf]) -> forebay_host::Result<Vec<Fingerprint>> {
    let mut found = Vec::new();
    each_file(paths, &mut |path, size_bytes| {
        let mut hasher = blake3::Hasher::new();
        let read = hasher.update_reader(files::open_to_read(path)?).map(|_| ());
        files::named(read, "read", path)?;
        found.push(Fingerprint {
            path: path.to_owned(),
            size_bytes,
            content: hasher.finalize(),
        });
        Ok(())
    })?;
    Ok(found)
}

/// Brings every file below these paths to the disk.
pub fn sync(paths: &[PathBuf]) -> forebay_host::Result<()> {
    each_file(paths, &mut |path, _| {
        files::named(files::open_to_read(path)?.sync_all(), "sync", path)
    })
}

/// Called with path and size in bytes.
type Visit<'a> = &'a mut dyn FnMut(&Path, u64) -> forebay_host::Result<()>;

fn each_file(paths: &[PathBuf], visit: Visit) -> forebay_host::Result<()> {
    for path in paths {
        let status = match files::status_of_name(path) {
            Err(error) if error.is_not_found() => continue,
            status => status?,
        };
        match status.kind {
            Kind::Directory => {
                let below: Vec<_> = files::names_in(path)?;
                let below: Vec<_> = below.into_iter().map(|name| path.join(name)).collect();
                each_file(&below, visit)?;
            }
            Kind::File => visit(path, status.size_bytes)?,
            Kind::Link | Kind::Other => {}
        }
    }
    Ok(())
}
