//! One node's share of an allocation.
//!
//! Data are plain files in a plain tree: in a directory, open to its owner alone, or in a memory
//! file system that only the job sees; one directory in it for each namespace. How large it may be
//! is judged before it is made.

mod capacity;
mod choice;
pub mod persistent;

use std::path::{Path, PathBuf};

use forebay_host::namespace::{self, Mount};
use forebay_host::{files, users};
use indicatif::HumanBytes;

pub use capacity::Grant;
pub use choice::{Reason, SHARED_MEMORY, Store, site_store};

/// A job that is about to be recorded, or an allocation that is about to be locked, is younger than this, in ms.
const UNRECORDED_MS_MAX: u128 = 2000;
/// Another limit, for tests.
const UNRECORDED_ENV: &str = "FOREBAY_UNRECORDED_MS";

/// What is older than so many milliseconds and not recorded is a killed process's.
pub fn unrecorded_ms_max() -> u128 {
    let given = std::env::var(UNRECORDED_ENV).ok();
    let given = given.and_then(|given| given.parse().ok());
    given.unwrap_or(UNRECORDED_MS_MAX)
}

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine refused.
    #[error(transparent)]
    Host(#[from] forebay_host::Error),
    /// The path given as store is something else.
    #[error("the store {} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// It could not be written down.
    #[error("the path of the store {} is not valid UTF-8", .0.display())]
    NotText(PathBuf),
    /// Another allocation has this id.
    #[error("allocation {id} exists already in {}", store.display())]
    Exists {
        /// The id.
        id: String,
        /// Where.
        store: PathBuf,
    },
    /// A persistent allocation has this name.
    #[error("there is a persistent allocation {0} already")]
    PersistentExists(String),
    /// A process that goes beyond its memory cgroup is killed, so this is said before.
    #[error(
        "an allocation of {} in memory does not fit: this machine has room for it, but the memory cgroup {} \
         is limited to {} and leaves {} beside the application",
        HumanBytes(*capacity_bytes), cgroup.display(), HumanBytes(*limit_bytes), HumanBytes(*usable_bytes)
    )]
    CgroupTooSmall {
        /// The capacity, after the machine itself was looked at.
        capacity_bytes: u64,
        /// The group.
        cgroup: PathBuf,
        /// Its limit.
        limit_bytes: u64,
        /// The most an allocation may have in it.
        usable_bytes: u64,
    },
}

impl Error {
    /// What to do about it.
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

/// The directory of one allocation. It stays until [`Allocation::free`] is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allocation {
    root: PathBuf,
    mounted: bool,
}

impl Allocation {
    /// Path of a job's allocation in the directory of a store.
    pub fn root_in(store: &Path, id: &str) -> PathBuf {
        store.join(format!("forebay-{}-{id}", users::user_id()))
    }

    /// Checks that [`Allocation::in_directory`] can use this id.
    ///
    /// # Errors
    /// If `id` is taken.
    pub fn check_unused(store: &Path, id: &str) -> Result<(), Error> {
        if files::status_of_name(&Self::root_in(store, id)).is_ok() {
            return Err(Error::Exists { id: id.to_owned(), store: store.to_owned() });
        }
        Ok(())
    }

    /// An allocation in a directory below a store's.
    ///
    /// # Errors
    /// If `id` is taken or a directory cannot be made; nothing is left behind then.
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

    /// What a private view has to mount for an allocation in memory.
    pub fn mount(at: &Path, size_bytes: u64, huge: bool, namespaces: &[&str]) -> Mount {
        Mount::Memory {
            at: at.to_owned(),
            size_bytes,
            huge,
            directories: namespaces.iter().map(PathBuf::from).collect(),
        }
    }

    /// The allocation at this path: mounted, or a directory made by an earlier process.
    pub fn found(root: PathBuf, mounted: bool) -> Self {
        Self { root, mounted }
    }

    /// The allocation's own directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Is it a file system of its own, whose size is a hard limit?
    pub fn is_mounted(&self) -> bool {
        self.mounted
    }

    /// Root of a namespace, without trailing slash.
    pub fn namespace(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Removes the allocation and everything in it. One that is mounted is emptied first: views of jobs
    /// within the job may hold it still.
    pub fn free(self) -> Result<(), Error> {
        let freed = if self.mounted {
            let emptied = files::empty_directory(&self.root);
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
    fn an_allocation_is_private_to_its_owner_and_leaves_nothing() {
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
