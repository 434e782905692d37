//! A second opening of a file, with CephFS's lazy I/O: writes are buffered and reads cached although other nodes have
//! the file open.
//!
//! libcephfs forgets what it cached only for files that were opened by path (`ceph_lazyio_synchronize`). The path comes
//! from the program, and the inode is compared.

use std::ffi::{CString, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use forebay_ceph::Attributes;

use crate::client::{Client, INO_ATTRIBUTE, counted, done};
use crate::error::Errno;
use crate::opened::Checked;

/// An open file with lazy I/O. Dropping it closes it.
pub(crate) struct LazyFile {
    client: Arc<Client>,
    descriptor: c_int,
    is_written: bool,
}

impl Drop for LazyFile {
    fn drop(&mut self) {
        // SAFETY: the descriptor is open and used by nobody else.
        let closed =
            done(unsafe { (self.client.functions.close_fd)(self.client.mount, self.descriptor) });
        if let Err(error) = closed {
            eprintln!("a lazy file was closed with error {}", error.0);
        }
    }
}

impl LazyFile {
    /// Opens the file of an inode by the path that a process sees; none if that path leads elsewhere in the namespace,
    /// which is mounted at `point`.
    pub(crate) fn open(
        client: &Arc<Client>,
        (point, path): (&Path, &Path),
        access: c_int,
        ino: u64,
    ) -> Result<Option<Self>, Errno> {
        for inner in inner_paths(point, path) {
            let opened = Self::open_inner(client, &inner, access)?;
            if let Some(file) = opened.filter(|file| file.ino() == Ok(ino)) {
                let functions = &client.functions;
                // SAFETY: the file is open.
                done(unsafe { (functions.lazy)(client.mount, file.descriptor, 1) })?;
                return Ok(Some(file));
            }
        }
        Ok(None)
    }

    fn open_inner(
        client: &Arc<Client>,
        path: &CString,
        access: c_int,
    ) -> Result<Option<Self>, Errno> {
        // libcephfs forgets nothing of an inode that it is reading, and tells nobody.
        let opened = client.without_reading_ahead(|| {
            // SAFETY: the path is valid during the call.
            let opened =
                unsafe { (client.functions.open_path)(client.mount, path.as_ptr(), access, 0) };
            counted(opened).map(|_| opened)
        });
        let is_written = access != libc::O_RDONLY;
        match opened {
            Ok(descriptor) => Ok(Some(Self { client: Arc::clone(client), descriptor, is_written })),
            Err(Errno(libc::ENOENT | libc::ENOTDIR | libc::EACCES | libc::EISDIR)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn ino(&self) -> Result<u64, Errno> {
        let (mut found, client) = (Attributes::default(), &self.client);
        // SAFETY: the file is open, and the structure is ours.
        done(unsafe {
            let found = &raw mut found;
            (client.functions.fd_attributes)(client.mount, self.descriptor, found, INO_ATTRIBUTE, 0)
        })?;
        Ok(found.ino)
    }

    pub(crate) fn read(&self, offset: i64, buffer: &mut [u8]) -> Result<usize, Errno> {
        let (at, length) = (buffer.as_mut_ptr().cast(), buffer.len() as i64);
        let client = &self.client;
        let _checked = Checked::begin(client.preload);
        // SAFETY: the file is open, and the function writes at most `length` bytes.
        counted(unsafe {
            (client.functions.read_fd)(client.mount, self.descriptor, at, length, offset)
        })
    }

    pub(crate) fn write(&self, offset: i64, data: &[u8]) -> Result<usize, Errno> {
        let (at, length) = (data.as_ptr().cast(), data.len() as i64);
        let client = &self.client;
        let _checked = Checked::begin(client.preload);
        // SAFETY: the file is open, and the function reads `length` bytes.
        counted(unsafe {
            (client.functions.write_fd)(client.mount, self.descriptor, at, length, offset)
        })
    }

    /// Writes back what this node has buffered of the inode. Each opening gets an error once.
    pub(crate) fn write_back(&self, only_data: bool) -> Result<(), Errno> {
        let client = &self.client;
        // SAFETY: the file is open.
        done(unsafe { (client.functions.sync_fd)(client.mount, self.descriptor, only_data.into()) })
    }

    /// The same for a file that this opening may have written.
    pub(crate) fn write_back_own(&self) -> Result<(), Errno> {
        if self.is_written { self.write_back(true) } else { Ok(()) }
    }

    /// Forgets what this node has cached of the inode. Nobody may read or write it meanwhile, and all is written back:
    /// what is in use would stay.
    pub(crate) fn forget_cached(&self) -> Result<(), Errno> {
        let client = &self.client;
        // SAFETY: the file is open.
        done(unsafe { (client.functions.synchronize_fd)(client.mount, self.descriptor, 0, 0) })
    }
}

/// What a path can be below the root of the namespace: without the mount point, else without one leading name after the
/// other, as the process may see the mount at another place.
fn inner_paths(point: &Path, path: &Path) -> Vec<CString> {
    let text = |path: &Path| CString::new([b"/", path.as_os_str().as_bytes()].concat()).ok();
    if let Ok(inner) = path.strip_prefix(point) {
        return text(inner).into_iter().collect();
    }
    let mut rest = path.strip_prefix("/").unwrap_or(path).components();
    let mut found = Vec::new();
    while !rest.as_path().as_os_str().is_empty() {
        found.extend(text(rest.as_path()));
        rest.next();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(point: &str, path: &str) -> Vec<String> {
        let paths = inner_paths(Path::new(point), Path::new(path));
        paths.into_iter().map(|path| path.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn path_below_the_mount_point_has_one_meaning() {
        assert_eq!(shown("/run/mount", "/run/mount/a/b"), ["/a/b"]);
    }

    #[test]
    fn path_of_another_place_is_tried_from_each_name_on() {
        assert_eq!(shown("/run/mount", "/scratch/a/b"), ["/scratch/a/b", "/a/b", "/b"]);
        assert!(shown("/run/mount", "").is_empty());
    }
}
