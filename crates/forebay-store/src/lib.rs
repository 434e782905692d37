//! Creates the part of an allocation on one node. Data are plain files, either in a directory that
//! only its owner can access, or in a memory file system that only the job sees. Each namespace is
//! a directory in it. Checks the size before creating it.
//! Never copies data.

mod capacity;
mod choice;
pub mod persistent;

use std::path::{Path, PathBuf};

use forebay_host::namespace::{self, Mount};
use forebay_host::{files, users};
use indicatif::HumanBytes;

pub use capacity::Grant;
pub use choice::{Reason, SHARED_MEMORY, Store};

/// The maximum time in ms until a new job is recorded, or a new allocation is locked.
const UNRECORDED_MS_MAX: u128 = 2000;
/// Overrides this limit in tests.
const UNRECORDED_ENV: &str = "FOREBAY_UNRECORDED_MS";

/// The age in ms after which an unrecorded item belongs to a killed process.
pub fn unrecorded_ms_max() -> u128 {
    let given = std::env::var(UNRECORDED_ENV).ok();
    let given = given.and_then(|given| given.parse().ok());
    given.unwrap_or(UNRECORDED_MS_MAX)
}

/// The reason why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A call of the operating system failed.
    #[error(transparent)]
    Host(#[from] forebay_host::Error),
    /// The path of the store is not a directory.
    #[error("the store {} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// Records cannot hold this path.
    #[error("the path of the store {} is not valid UTF-8", .0.display())]
    NotText(PathBuf),
    /// Another allocation has this id.
    #[error("allocation {id} exists already in {}", store.display())]
    Exists {
        /// The id.
        id: String,
        /// The store.
        store: PathBuf,
    },
    /// A persistent allocation has this name.
    #[error("there is a persistent allocation {0} already")]
    PersistentExists(String),
    /// The kernel would kill processes that exceed their memory cgroup, so the check comes first.
    #[error(
        "an allocation of {} in memory does not fit: this machine has room for it, but the memory cgroup {} \
         is limited to {} and leaves {} for the allocation",
        HumanBytes(*capacity_bytes), cgroup.display(), HumanBytes(*limit_bytes), HumanBytes(*usable_bytes)
    )]
    CgroupTooSmall {
        /// The capacity, within the limits of the machine.
        capacity_bytes: u64,
        /// The directory of the cgroup.
        cgroup: PathBuf,
        /// Its limit.
        limit_bytes: u64,
        /// The maximum size of an allocation in it.
        usable_bytes: u64,
    },
}

impl Error {
    /// The remedy.
    pub fn hint(&self) -> String {
        match self {
            Self::CgroupTooSmall { usable_bytes, .. } if *usable_bytes < 1 << 20 => {
                "give the job more memory (Slurm: --mem), or run it with --store DIR on a disk"
                    .to_owned()
            }
            Self::CgroupTooSmall { usable_bytes, .. } => format!(
                "give the job more memory (Slurm: --mem), or run it with --capacity {}MiB or less, \
                 or with --store DIR on a disk",
                usable_bytes >> 20
            ),
            _ => "choose another store with --store DIR".to_owned(),
        }
    }
}

/// The directory of an allocation. It exists until [`Allocation::free`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    root: PathBuf,
    mounted: bool,
}

impl Allocation {
    /// Path of a job's allocation in a store.
    pub fn root_in(store: &Path, id: &str) -> PathBuf {
        store.join(format!("forebay-{}-{id}", users::user_id()))
    }

    /// Checks that [`Allocation::in_directory`] can use this id.
    ///
    /// # Errors
    /// If `id` is in use.
    pub fn check_unused(store: &Path, id: &str) -> Result<(), Error> {
        if files::status_of_name(&Self::root_in(store, id)).is_ok() {
            return Err(Error::Exists { id: id.to_owned(), store: store.to_owned() });
        }
        Ok(())
    }

    /// Creates an allocation in a store's directory.
    ///
    /// # Errors
    /// If `id` is in use or a directory cannot be created. Leaves nothing behind.
    pub fn in_directory(store: &Path, id: &str, namespaces: &[&str]) -> Result<Self, Error> {
        let root = Self::root_in(store, id);
        match files::make_directory(&root, 0o700) {
            Err(error) if error.already_exists() => {
                return Err(Error::Exists { id: id.to_owned(), store: store.to_owned() });
            }
            made => made?,
        }
        let allocation = Self::found(root, false);
        for namespace in namespaces {
            if let Err(error) = files::make_directory(&allocation.namespace(namespace), 0o755) {
                allocation.free()?;
                return Err(error.into());
            }
        }
        Ok(allocation)
    }

    /// The mount of a memory allocation, for a private view.
    pub fn mount(at: &Path, size_bytes: u64, huge: bool, namespaces: &[&str]) -> Mount {
        Mount::Memory {
            at: at.to_owned(),
            size_bytes,
            huge,
            directories: namespaces.iter().map(PathBuf::from).collect(),
        }
    }

    /// An existing allocation: mounted, or created as a directory by an earlier process.
    pub fn found(root: PathBuf, mounted: bool) -> Self {
        Self { root, mounted }
    }

    /// The directory of the allocation.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether it is a separate file system, whose size is a hard limit.
    pub fn is_mounted(&self) -> bool {
        self.mounted
    }

    /// The directory of a namespace, without trailing slash.
    pub fn namespace(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Removes the allocation and its content. A mounted allocation is emptied first, because views
    /// of nested jobs may still hold it.
    ///
    /// # Errors
    /// If something cannot be removed. Nothing is removed if something is mounted below a directory.
    pub fn free(self) -> Result<(), Error> {
        let freed = if self.mounted {
            let emptied = namespace::detach_below(&self.root)
                .and_then(|()| files::empty_directory(&self.root));
            namespace::detach(&self.root).and(emptied)
        } else {
            files::remove_tree(&self.root)
        };
        Ok(freed?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocation_is_private_to_its_owner_and_leaves_nothing() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let make = |namespaces: &[&str]| Allocation::in_directory(scratch.path(), "7", namespaces);
        let made = make(&["striped", "private"]).expect("made");
        assert_eq!(files::status(made.root()).expect("root").mode, 0o700);
        assert!(files::status(&made.namespace("striped")).is_ok());
        let again = make(&[]).expect_err("taken").to_string();
        assert!(again.starts_with("allocation 7 exists already in"));
        let root = made.root().to_owned();
        made.free().expect("freed");
        assert!(files::status(&root).expect_err("gone").is_not_found());
        make(&["a", "a"]).expect_err("twice");
        assert!(files::status(&root).expect_err("gone").is_not_found());
    }
}
