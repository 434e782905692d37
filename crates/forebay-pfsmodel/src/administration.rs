//! Sets and shows the striping of files and directories, with the rules of Lustre's `lfs`.
//! Never changes the striping of a file that has data or a layout. A hook of the preload must not call it.
// A command uses these functions, not the hooks of the preload; they may use std::fs.
#![allow(clippy::disallowed_methods)]

use std::ffi::{CStr, CString, c_int};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::kernel;
use crate::layout::Layout;
use crate::machine::STRIPE_SIZE_MULTIPLE_BYTES;
use crate::state::State;
use crate::striping::Striping;

/// Lustre's limit for the stripes of a file; more than there are targets means all targets.
const STRIPE_COUNT_MAX: i32 = 2000;

/// Lustre stores stripe sizes in 32 bits.
const STRIPE_SIZE_BYTES_MAX: u64 = u32::MAX as u64;

/// The striping of one file or directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathStriping {
    /// The striping of new files in a directory; a first target of -1 is "any".
    Directory(Striping),
    /// The striping of a file.
    File {
        /// Its layout.
        layout: Layout,
        /// The inode number, shown in place of Lustre's object ids.
        inode: u64,
    },
}

/// Why a striping cannot be set or shown.
#[derive(Debug, Error)]
pub enum LayoutError {
    /// The path is not on the emulated file system.
    #[error("{path} is not on the emulated file system, which is {roots}")]
    NotEmulated {
        /// The path as given.
        path: String,
        /// The emulated directories.
        roots: String,
    },
    /// As Lustre's EEXIST: the layout of a file never changes.
    #[error("{path}: stripe already set: the layout of a file never changes")]
    Exists {
        /// The path as given.
        path: String,
    },
    /// A number that Lustre also rejects.
    #[error("{what} {value} is not possible; expected {expected}")]
    Value {
        /// The name of the number.
        what: &'static str,
        /// The number.
        value: String,
        /// The expected values.
        expected: String,
    },
    /// The operation needs a directory.
    #[error("{path} is no directory")]
    NotADirectory {
        /// The path as given.
        path: String,
    },
    /// The file system reported an error.
    #[error("{path}: {source}")]
    System {
        /// The path as given.
        path: String,
        /// The reported error.
        source: io::Error,
    },
}

impl LayoutError {
    /// What to do about it, if known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Exists { .. } => Some(
                "to change its striping, set the striping of a new file and copy the data".to_owned(),
            ),
            Self::System { source, .. } if source.raw_os_error() == Some(libc::ENOTSUP) => {
                Some("emulate a directory on a file system with user extended attributes (ext4, xfs, tmpfs since Linux 6.6): --pfs-root DIR".to_owned())
            }
            _ => None,
        }
    }
}

impl State {
    /// Sets the striping of new files in a directory or of an empty file without layout. Creates a
    /// missing file, empty, with this striping.
    ///
    /// # Errors
    /// [`LayoutError`], among them `Exists` for a file that has a layout or data.
    pub fn set_striping(&self, path: &Path, striping: Striping) -> Result<(), LayoutError> {
        self.check_striping(striping)?;
        let (real, name) = self.resolve(path)?;
        let metadata = match real.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => {
                return striping.store_at_path(&name).map_err(|source| system(path, source));
            }
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(source) => return Err(system(path, source)),
        };
        if metadata.as_ref().is_some_and(|found| found.len() > 0 || !found.is_file()) {
            return Err(LayoutError::Exists { path: path.display().to_string() });
        }
        let (descriptor, is_new) =
            open_empty(&name, metadata.is_none()).map_err(|source| system(path, source))?;
        let bound = Striping::from(self.complete(striping)).bind_descriptor(descriptor);
        kernel::close(descriptor);
        if bound.is_err() && is_new {
            std::fs::remove_file(&real).map_err(|source| system(path, source))?;
        }
        bound.map_err(|source| match source.raw_os_error() {
            Some(libc::EEXIST) => LayoutError::Exists { path: path.display().to_string() },
            _ => system(path, source),
        })
    }

    /// Removes the default striping of a directory.
    ///
    /// # Errors
    /// [`LayoutError`]: not emulated, no directory, not permitted.
    pub fn remove_striping(&self, path: &Path) -> Result<(), LayoutError> {
        let (real, name) = self.resolve(path)?;
        if !real.is_dir() {
            return Err(LayoutError::NotADirectory { path: path.display().to_string() });
        }
        Striping::remove_from_path(&name).map_err(|source| system(path, source))
    }

    /// The striping of a file or directory; `raw`: values left to the file system stay 0 or -1.
    ///
    /// # Errors
    /// [`LayoutError`]: not emulated, missing, not permitted.
    pub fn striping(&self, path: &Path, raw: bool) -> Result<PathStriping, LayoutError> {
        let (real, name) = self.resolve(path)?;
        let metadata = real.metadata().map_err(|source| system(path, source))?;
        let stored = Striping::of_path(&name).map_err(|source| system(path, source))?;
        if metadata.is_dir() {
            let striping = stored.unwrap_or(Striping::DEFAULT);
            let shown = if raw { striping } else { self.spell_out(striping) };
            return Ok(PathStriping::Directory(shown));
        }
        let layout = stored.and_then(|striping| self.bound(striping));
        let layout = layout.unwrap_or_else(|| self.unbound_layout(metadata.ino()));
        Ok(PathStriping::File { layout, inode: metadata.ino() })
    }

    /// Sorted entries of an emulated directory, joined to `path`.
    ///
    /// # Errors
    /// [`LayoutError`]: not emulated, no directory, not permitted.
    pub fn entries(&self, path: &Path) -> Result<Vec<PathBuf>, LayoutError> {
        let (real, _) = self.resolve(path)?;
        let entries = std::fs::read_dir(real).map_err(|source| system(path, source))?;
        let names: io::Result<Vec<PathBuf>> =
            entries.map(|entry| entry.map(|entry| path.join(entry.file_name()))).collect();
        let mut names = names.map_err(|source| system(path, source))?;
        names.sort();
        Ok(names)
    }

    /// Fills in the defaults, as `lfs getstripe` shows them for a directory.
    fn spell_out(&self, striping: Striping) -> Striping {
        let default = Striping::from(self.unbound_layout(0));
        let or = |value, default| if value == 0 { default } else { value };
        Striping {
            stripe_count: if striping.stripe_count == 0 {
                default.stripe_count
            } else {
                striping.stripe_count
            },
            stripe_size_bytes: or(striping.stripe_size_bytes, default.stripe_size_bytes),
            first_target: striping.first_target,
        }
    }

    fn check_striping(&self, striping: Striping) -> Result<(), LayoutError> {
        let refuse =
            |what, value: String, expected| Err(LayoutError::Value { what, value, expected });
        let targets = self.targets();
        if !(-1..=STRIPE_COUNT_MAX).contains(&striping.stripe_count) {
            let expected =
                format!("-1 (all {targets} targets), 0 (the default) or 1 to {STRIPE_COUNT_MAX}");
            return refuse("stripe count", striping.stripe_count.to_string(), expected);
        }
        let size = striping.stripe_size_bytes;
        if !size.is_multiple_of(STRIPE_SIZE_MULTIPLE_BYTES) || size > STRIPE_SIZE_BYTES_MAX {
            let expected = "a multiple of 64 KiB below 4 GiB, or 0 for the default".to_owned();
            return refuse("stripe size", size.to_string(), expected);
        }
        if striping.first_target < -1 || i64::from(striping.first_target) >= i64::from(targets) {
            let expected = format!("-1 (any) or 0 to {}", targets - 1);
            return refuse("stripe index", striping.first_target.to_string(), expected);
        }
        Ok(())
    }

    /// The real path, also of a missing file, if it is emulated.
    fn resolve(&self, path: &Path) -> Result<(PathBuf, CString), LayoutError> {
        let real = match (path.canonicalize(), path.file_name()) {
            (Ok(real), _) => real,
            (Err(error), Some(name)) if error.kind() == io::ErrorKind::NotFound => {
                let parent = path
                    .parent()
                    .filter(|parent| !parent.as_os_str().is_empty())
                    .unwrap_or(Path::new("."));
                parent.canonicalize().map_err(|source| system(path, source))?.join(name)
            }
            (Err(source), _) => return Err(system(path, source)),
        };
        if !self.covers(real.as_os_str().as_bytes()) {
            let roots: Vec<String> =
                self.roots().iter().map(|root| root.display().to_string()).collect();
            return Err(LayoutError::NotEmulated {
                path: path.display().to_string(),
                roots: roots.join(", "),
            });
        }
        let name = CString::new(real.as_os_str().as_bytes())
            .map_err(|_| system(path, io::Error::from_raw_os_error(libc::EINVAL)))?;
        Ok((real, name))
    }
}

fn system(path: &Path, source: io::Error) -> LayoutError {
    LayoutError::System { path: path.display().to_string(), source }
}

/// Opens a file for its striping, and creates a missing one. Returns whether it was created here: another process may
/// create it at the same time.
fn open_empty(name: &CStr, is_missing: bool) -> io::Result<(c_int, bool)> {
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_NOFOLLOW;
    if is_missing {
        match kernel::open(name, flags | libc::O_EXCL, 0o666) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return opened.map(|descriptor| (descriptor, true)),
        }
    }
    kernel::open(name, flags, 0o666).map(|descriptor| (descriptor, false))
}
