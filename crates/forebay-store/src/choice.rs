//! Chooses the store of an allocation.
//! Assumes that the directory of a store exists: never creates one. A named one may be read-only.

use std::path::{Path, PathBuf};

use forebay_host::files::{self, Kind};
use forebay_host::{disks, filesystem};

use crate::Error;

/// The memory file system that all processes see. Used as store if private mounts are not possible.
pub const SHARED_MEMORY: &str = "/dev/shm";

/// A store for allocations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Store {
    /// A directory. It does not enforce the size of allocations.
    Directory {
        /// The path, with links resolved.
        path: PathBuf,
        /// Whether it is on a memory file system.
        in_memory: bool,
    },
    /// A separate memory file system for each allocation.
    Memory {
        /// Whether to use huge pages, for few large files.
        huge: bool,
    },
}

/// The reason for the choice of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The user named it.
    Named,
    /// The configuration names it.
    Site,
    /// A local NVMe device was found.
    Nvme {
        /// The device.
        device: String,
    },
    /// No other store is configured or found.
    Default,
}

impl Store {
    /// Chooses the user's store, else the site's, else a directory on local NVMe, else memory. The
    /// names `memory` and `memory:huge` mean memory. All other names are directories.
    pub fn choose(named: Option<&Path>, site: Option<&Path>) -> Result<(Self, Reason), Error> {
        if let Some(name) = named {
            return Ok((Self::named(name)?, Reason::Named));
        }
        if let Some(name) = site {
            return Ok((Self::named(name)?, Reason::Site));
        }
        match disks::nvme_directories()?.into_iter().next() {
            Some(found) => {
                let device = found.device;
                Ok((Self::directory(&found.directory)?, Reason::Nvme { device }))
            }
            None => Ok((Self::Memory { huge: false }, Reason::Default)),
        }
    }

    fn named(name: &Path) -> Result<Self, Error> {
        match name.to_str() {
            Some("memory") => Ok(Self::Memory { huge: false }),
            Some("memory:huge") => Ok(Self::Memory { huge: true }),
            _ => Self::directory(name),
        }
    }

    /// A directory as a store.
    pub fn directory(path: &Path) -> Result<Self, Error> {
        let path = files::real_path(path)?;
        if files::status(&path)?.kind != Kind::Directory {
            return Err(Error::NotADirectory(path));
        }
        if path.to_str().is_none() {
            return Err(Error::NotText(path));
        }
        let in_memory = filesystem::is_in_memory(&path)?;
        Ok(Self::Directory { path, in_memory })
    }

    /// Whether the data are in memory, and so do not survive a failure of the node.
    pub fn in_memory(&self) -> bool {
        match self {
            Self::Directory { in_memory, .. } => *in_memory,
            Self::Memory { .. } => true,
        }
    }

    /// Whether the size of an allocation is a hard limit.
    pub fn enforces_capacity(&self) -> bool {
        matches!(self, Self::Memory { .. })
    }
}

/// The name as the user writes it.
impl std::fmt::Display for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Self::Directory { path, .. } => path.display().fmt(f),
            Self::Memory { huge: false } => f.write_str("memory"),
            Self::Memory { huge: true } => f.write_str("memory:huge"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choice_of_the_user_precedes_that_of_the_site() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let (memory, huge) = (Path::new("memory"), Path::new("memory:huge"));
        let chosen = |named, site| Store::choose(named, site).expect("chosen");
        let expected = (Store::Memory { huge: true }, Reason::Named);
        assert_eq!(chosen(Some(huge), Some(scratch.path())), expected);
        let expected = (Store::Memory { huge: false }, Reason::Site);
        assert_eq!(chosen(None, Some(memory)), expected);
        let (store, _) = chosen(Some(scratch.path()), None);
        assert_eq!(store.to_string(), scratch.path().to_string_lossy());
        assert!(!store.enforces_capacity());
    }

    #[test]
    fn store_must_be_an_existing_directory() {
        let error = |name| Store::choose(Some(Path::new(name)), None).expect_err(name);
        assert!(error("/no/such").to_string().starts_with("cannot find /no/such"));
        let file = error("/etc/passwd").to_string();
        assert_eq!(file, "the store /etc/passwd is not a directory");
    }
}
