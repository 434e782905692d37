//! Errors of allocations and views, with their remedies.

use std::path::PathBuf;

use indicatif::HumanBytes;

/// Why a job gets no allocation or no view.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error(transparent)]
    Host(#[from] forebay_host::Error),
    /// The store refused.
    #[error(transparent)]
    Store(#[from] forebay_store::Error),
    /// The files to stage in are larger than the allocation.
    #[error("stage-in needs {}, the allocation in {store} has {}", HumanBytes(*needed_bytes), HumanBytes(*capacity_bytes))]
    DoesNotFit {
        /// Bytes of all files to stage in.
        needed_bytes: u64,
        /// Capacity of the allocation.
        capacity_bytes: u64,
        /// The store.
        store: String,
    },
    /// The store has less than requested, and the user requires the full capacity.
    #[error("{} are asked for, and the store {store} can give {}", HumanBytes(*asked_bytes), HumanBytes(*usable_bytes))]
    LessThanAsked {
        /// Requested bytes.
        asked_bytes: u64,
        /// Available bytes.
        usable_bytes: u64,
        /// The store.
        store: String,
    },
    /// A request needs a private view of the file system, but the view is disabled.
    #[error("this needs a private view of the file system: {0}")]
    NoView(String),
    /// `--map` names a file, but works only with directories.
    #[error("--map: {} is no directory", .0.display())]
    MapOfFile(PathBuf),
    /// The path of a map does not exist and cannot be added in the view.
    #[error("--map {}: it does not exist: {error}", at.display())]
    MapTargetUnusable {
        /// The path in the script.
        at: PathBuf,
        /// Why it cannot be added.
        error: forebay_host::Error,
    },
    /// A map would hide a directory that the job needs.
    #[error("--map {}: it would hide {}, which the job needs", at.display(), hidden.display())]
    MapHides {
        /// The path in the script.
        at: PathBuf,
        /// The hidden directory.
        hidden: PathBuf,
    },
    /// The system does not allow a private view of the file system.
    #[error("no private view of the file system: {0}")]
    View(forebay_host::Error),
}

impl Error {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Host(error) => return error.hint().map(str::to_owned),
            Self::Store(error) => return Some(error.hint()),
            Self::DoesNotFit { .. } => {
                "ask for more with capacity=, choose a larger store with --store DIR, or stage less"
            }
            Self::LessThanAsked { .. } => {
                "leave out --strict-capacity, or choose a larger store with --store DIR"
            }
            Self::NoView(_) | Self::View(_) => {
                "forebay doctor says what this machine allows; --map, memory:huge and /mnt/bb need it"
            }
            Self::MapOfFile(_) => "write --map PATH=DIR",
            Self::MapTargetUnusable { at, .. } => {
                return Some(format!("make it: mkdir -p '{}'", at.display()));
            }
            Self::MapHides { .. } => {
                "map a directory further down, or set TMPDIR, FOREBAY_STATE or --store elsewhere"
            }
        };
        Some(hint.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_view_hints_at_the_doctor_and_refused_store_at_another() {
        let refused = forebay_host::Error {
            operation: "enter",
            path: "/x".into(),
            source: std::io::ErrorKind::PermissionDenied.into(),
        };
        let view = Error::View(refused);
        assert!(view.hint().is_some_and(|hint| hint.starts_with("forebay doctor")));
        let store = Error::from(forebay_store::Error::NotADirectory("/x".into()));
        let hint = store.hint();
        assert_eq!(hint.as_deref(), Some("choose another store with --store DIR"));
    }
}
