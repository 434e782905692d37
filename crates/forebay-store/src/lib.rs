//! One node's share of an allocation.
//!
//! Data are plain files in a plain tree. An allocation is a directory, open to its owner alone,
//! with one directory in it for each namespace.

use std::path::{Path, PathBuf};

use forebay_host::{files, machine};

/// Share of the space found that an allocation may fill. The rest stays for the application's own
/// memory (a memory store) or for the other users of the disk.
const USABLE_MEMORY_PERCENT: u64 = 50;
const USABLE_DISK_PERCENT: u64 = 90;

/// The store where none is named: memory.
pub const DEFAULT_STORE: &str = "/dev/shm";

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine refused.
    #[error(transparent)]
    Host(#[from] forebay_host::Error),
    /// The path given as store is something else.
    #[error("the store {} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// Another allocation has this id.
    #[error("allocation {id} exists already in {}", store.display())]
    Exists {
        /// The id.
        id: String,
        /// Where.
        store: PathBuf,
    },
}

/// A directory in which allocations are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    directory: PathBuf,
    in_memory: bool,
}

/// What the store can give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// Size in bytes: what was asked, or what can be had if that is less.
    pub capacity_bytes: u64,
    /// Was less given than asked?
    pub clamped: bool,
}

impl Store {
    /// Takes the directory the user or the site named; without one, [`DEFAULT_STORE`].
    ///
    /// # Errors
    /// If the directory named does not exist or is none.
    pub fn choose(named: Option<&Path>) -> Result<Self, Error> {
        let directory = files::real_path(named.unwrap_or(Path::new(DEFAULT_STORE)))?;
        if files::status(&directory)?.kind != files::Kind::Directory {
            return Err(Error::NotADirectory(directory));
        }
        let in_memory = machine::is_in_memory(&directory)?;
        Ok(Self {
            directory,
            in_memory,
        })
    }

    /// Where allocations lie.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Are the data held in memory? Then they do not survive the node.
    #[must_use]
    pub fn in_memory(&self) -> bool {
        self.in_memory
    }

    /// What an allocation that asks for `wanted_bytes` can have now. Capacity in a script is what
    /// a large machine was asked for; here it is a wish.
    ///
    /// # Errors
    /// If the space cannot be measured.
    pub fn grant(&self, wanted_bytes: u64) -> Result<Grant, Error> {
        let space = machine::space(&self.directory)?.available_bytes;
        let usable_bytes = if self.in_memory {
            space.min(machine::available_memory_bytes()?) / 100 * USABLE_MEMORY_PERCENT
        } else {
            space / 100 * USABLE_DISK_PERCENT
        };
        Ok(Grant {
            capacity_bytes: wanted_bytes.min(usable_bytes),
            clamped: wanted_bytes > usable_bytes,
        })
    }

    /// Makes an allocation with these namespaces, each an empty directory.
    ///
    /// # Errors
    /// If `id` is taken or a directory cannot be made; nothing is left behind then.
    pub fn allocate(&self, id: &str, namespaces: &[&str]) -> Result<Allocation, Error> {
        let name = format!("forebay-{}-{id}", machine::user_id());
        let root = self.directory.join(name);
        match files::make_directory(&root, 0o700) {
            Err(error) if error.already_exists() => {
                return Err(Error::Exists {
                    id: id.to_owned(),
                    store: self.directory.clone(),
                });
            }
            made => made?,
        }
        let allocation = Allocation { root };
        for namespace in namespaces {
            if let Err(error) = files::make_directory(&allocation.namespace(namespace), 0o755) {
                allocation.free()?;
                return Err(error.into());
            }
        }
        Ok(allocation)
    }
}

/// A directory that holds one allocation. It stays until [`Allocation::free`] is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    root: PathBuf,
}

impl Allocation {
    /// The allocation's own directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Root of a namespace, without trailing slash.
    #[must_use]
    pub fn namespace(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Removes the allocation and everything in it.
    ///
    /// # Errors
    /// If something in it cannot be removed.
    pub fn free(self) -> Result<(), Error> {
        Ok(files::remove_tree(&self.root)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allocation_is_private_to_its_owner_and_leaves_nothing() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let store = Store::choose(Some(scratch.path())).expect("store");
        let made = store.allocate("7", &["striped", "private"]).expect("made");
        assert_eq!(files::status(made.root()).expect("root").mode, 0o700);
        assert!(files::status(&made.namespace("striped")).is_ok());
        let again = store.allocate("7", &[]).expect_err("taken");
        assert!(
            again
                .to_string()
                .starts_with("allocation 7 exists already in")
        );
        let root = made.root().to_owned();
        made.free().expect("freed");
        assert!(files::status(&root).expect_err("gone").is_not_found());
    }

    #[test]
    fn capacity_is_clamped_to_what_is_there() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let store = Store::choose(Some(scratch.path())).expect("store");
        let small = store.grant(4096).expect("grant");
        assert_eq!((small.capacity_bytes, small.clamped), (4096, false));
        let large = store.grant(1 << 60).expect("grant");
        assert!(large.clamped && large.capacity_bytes < 1 << 60);
    }

    #[test]
    fn a_store_must_be_a_directory_that_exists() {
        let missing = Store::choose(Some(Path::new("/no/such"))).expect_err("missing");
        assert!(missing.to_string().starts_with("cannot find /no/such"));
        let file = Store::choose(Some(Path::new("/etc/passwd"))).expect_err("a file");
        assert_eq!(file.to_string(), "the store /etc/passwd is not a directory");
    }
}
