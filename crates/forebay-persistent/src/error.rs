//! Errors of persistent allocations, with the remedy.

use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use forebay_directive::Position;
use forebay_host::users;
use forebay_store::persistent::Persistent;
use indicatif::HumanBytes;

/// The result of an operation on persistent allocations.
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// A created allocation that no longer exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingAllocation {
    /// Its name.
    pub name: String,
    /// The path of its directory.
    pub root: PathBuf,
    /// True if it was in memory, and its data are lost.
    pub in_memory: bool,
    /// Another machine that created it and alone knows its state.
    pub host: Option<String>,
}

/// Why a persistent allocation cannot be made, used or destroyed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error(transparent)]
    Host(#[from] forebay_host::Error),
    /// The store reported an error.
    #[error(transparent)]
    Store(#[from] forebay_store::Error),
    /// No store has an allocation of this name.
    #[error("there is no persistent allocation {name} in {}", places(stores))]
    Unknown {
        /// The name.
        name: String,
        /// The searched stores.
        stores: Vec<PathBuf>,
        /// The existing names.
        names: Vec<String>,
    },
    /// Several stores have an allocation of this name.
    #[error("there is a persistent allocation {name} in {}", places(stores))]
    Several {
        /// The name.
        name: String,
        /// The stores.
        stores: Vec<PathBuf>,
    },
    /// A created allocation no longer exists.
    #[error("the persistent allocation {} is not there: it was made as {}{}", .0.name, .0.root.display(), on_host(.0))]
    Missing(MissingAllocation),
    /// The name is in use.
    #[error("there is a persistent allocation {} already, {}", .0.name, origin(.0))]
    Exists(Box<Persistent>),
    /// The name is invalid.
    #[error("{name} {fault}")]
    BadName {
        /// The invalid name.
        name: String,
        /// Why it is invalid.
        fault: String,
    },
    /// The store has less than the requested capacity, and the user wants all of it.
    #[error("{} are asked for, and the store {store} can give {}", HumanBytes(*asked_bytes), HumanBytes(*usable_bytes))]
    LessThanAsked {
        /// Requested bytes.
        asked_bytes: u64,
        /// Available bytes.
        usable_bytes: u64,
        /// The store.
        store: String,
    },
    /// The group does not exist.
    #[error("there is no group {0}")]
    NoGroup(String),
    /// The allocation belongs to another user.
    #[error("the persistent allocation {name} is {owner}'s")]
    NotOurs {
        /// The name.
        name: String,
        /// The owner.
        owner: String,
    },
    /// The user has no permission to use the allocation.
    #[error("the persistent allocation {name} is {owner}'s, and closed to you")]
    Closed {
        /// The name.
        name: String,
        /// The owner.
        owner: String,
    },
    /// Jobs use the allocation.
    #[error("the persistent allocation {name} is in use{}", jobs_of(jobs))]
    InUse {
        /// The name.
        name: String,
        /// The known jobs.
        jobs: Vec<String>,
    },
    /// Only another user can remove a part of it.
    #[error(
        "the persistent allocation {name} cannot be removed as a whole: {owner} lets nobody else remove what is in {}",
        forebay_host::files::printable(directory)
    )]
    KeptByAnother {
        /// The name.
        name: String,
        /// The owner of the directory.
        owner: String,
        /// The directory.
        directory: PathBuf,
    },
    /// Jobs of other machines or containers may use it, and no lock covers them.
    #[error(
        "nothing here tells whether others still use the persistent allocation {name}{}",
        jobs_of(jobs)
    )]
    OutOfSight {
        /// The name.
        name: String,
        /// The jobs.
        jobs: Vec<String>,
        /// The directory with their use files.
        uses: PathBuf,
    },
    /// Jobs that were killed, or whose stage-out failed, have data in it.
    #[error("the persistent allocation {name} holds what is to be staged out yet{}", jobs_of(jobs))]
    Undrained {
        /// The name.
        name: String,
        /// The jobs.
        jobs: Vec<String>,
    },
    /// The allocation has expired.
    #[error("the persistent allocation {name} expired on {}", format_utc(*expires_unix_s))]
    Expired {
        /// The name.
        name: String,
        /// The expiry time, in seconds since 1970.
        expires_unix_s: u64,
    },
    /// The record of the allocation cannot be parsed.
    #[error("the record of the persistent allocation {name} is damaged: {reason}")]
    Damaged {
        /// The name.
        name: String,
        /// The path of its namespace.
        root: PathBuf,
        /// Why it cannot be parsed.
        reason: String,
    },
    /// The allocation is being destroyed.
    #[error("the persistent allocation {0} is being destroyed")]
    Vanishing(String),
    /// A process has locked the allocation for long. Whoever may list the directory may lock it.
    #[error(
        "the persistent allocation {name} is locked by another process, which destroys it or keeps others from it"
    )]
    Locked {
        /// The name.
        name: String,
        /// The directory that is locked.
        root: PathBuf,
    },
    /// The record of the job cannot be changed.
    #[error(transparent)]
    Record(#[from] forebay_record::Error),
    /// An error caused by a directive of a job's script.
    #[error("{}: {}: {error}", script.display(), position.on_line())]
    OfJob {
        /// The script.
        script: PathBuf,
        /// The position of the directive.
        position: Position,
        /// The error.
        error: Box<Self>,
    },
    /// A series runs one job many times and must not change persistent allocations.
    #[error(
        "a job with persistent allocations cannot be run as a series: each run would change what stays"
    )]
    InSeries,
}

impl Error {
    /// The remedy.
    pub fn hint(&self) -> Option<String> {
        let same = match self {
            Self::BadName { .. } => "choose another name, for example proj1",
            Self::Store(_) => "choose another store with --store DIR",
            Self::Unknown { names, .. } if names.is_empty() => {
                "name its store with --store DIR, or create it: #BB create_persistent, or \
                 forebay persistent create"
            }
            Self::Several { .. } => "name the store with --store DIR",
            Self::LessThanAsked { .. } => {
                "leave out --strict-capacity, or choose a larger store with --store DIR"
            }
            Self::NoGroup(_) => "name one of those that the command id shows",
            Self::InUse { .. } => {
                "wait for the jobs to end, or end them; after a job of another user was killed, ask for forebay clean \
                 there"
            }
            Self::Vanishing(_) => "make another one",
            Self::InSeries => "tune a copy of the script with #DW jobdw instead",
            _ => return self.hint_with_names(),
        };
        Some(same.to_owned())
    }

    fn hint_with_names(&self) -> Option<String> {
        Some(match self {
            Self::Record(error) => return error.hint(),
            Self::OfJob { error, .. } => return error.hint(),
            Self::Unknown { names, .. } => {
                format!("there are: {}; other stores are named with --store DIR", names.join(", "))
            }
            Self::Missing(missing) => missing.hint(),
            Self::Exists(other) => format!(
                "use it with #DW persistentdw name={0}, take another name, or forebay persistent destroy {0}",
                other.name
            ),
            Self::NotOurs { owner, .. } => format!("ask {owner} to destroy it"),
            Self::Closed { owner, .. } => {
                format!("ask {owner} for one that your group may use (--group, --mode 0770)")
            }
            Self::KeptByAnother { owner, directory, .. } => format!(
                "ask {owner} to remove it, or to allow it: chmod -R g+rwX {}",
                forebay_host::files::printable(directory)
            ),
            Self::OutOfSight { name, uses, .. } => format!(
                "where they run: forebay persistent destroy {name}; if that machine is gone for good, first remove \
                 what is in {}",
                uses.display()
            ),
            Self::Undrained { name, .. } => format!(
                "forebay clean JOB stages it out; forebay persistent destroy --hurry {name} deletes it"
            ),
            Self::Expired { name, .. } => format!(
                "the data are still there: copy what is wanted, then forebay persistent destroy {name}"
            ),
            Self::Damaged { name, root, .. } => format!(
                "the data are in {}: copy what is wanted, then forebay persistent destroy {name}",
                root.display()
            ),
            Self::Locked { root, .. } => {
                format!("lsof {} or /proc/locks names the process", root.display())
            }
            _ => return None,
        })
    }
}

impl MissingAllocation {
    fn hint(&self) -> String {
        let Self { name, host, .. } = self;
        match host {
            Some(host) => format!("use and destroy it on {host}"),
            None if self.in_memory => format!(
                "it was in memory and is gone: forebay persistent destroy {name} forgets it"
            ),
            None => format!(
                "mount its file system; if it is gone for good: forebay persistent destroy --hurry {name}"
            ),
        }
    }
}

fn places(stores: &[PathBuf]) -> String {
    if stores.is_empty() {
        return "any store: there is none".to_owned();
    }
    let stores: Vec<_> = stores.iter().map(|store| store.display().to_string()).collect();
    stores.join(", ")
}

fn on_host(missing: &MissingAllocation) -> String {
    let host = missing.host.as_ref();
    host.map_or_else(String::new, |host| format!(" on {host}"))
}

fn jobs_of(jobs: &[String]) -> String {
    if jobs.is_empty() {
        return String::new();
    }
    format!(": {}", jobs.join(", "))
}

/// The creator and the creation time of an allocation.
fn origin(other: &Persistent) -> String {
    let owner = users::user_named(other.owner);
    let Ok(about) = &other.about else {
        return format!("{owner}'s");
    };
    let job = match (&about.job_id, &about.script) {
        (Some(id), Some(script)) => format!(", by job {id} ({script})"),
        _ => String::new(),
    };
    format!("made by {owner} on {}{job}", format_utc(about.created_unix_s))
}

/// Seconds since 1970 as `2026-11-22T08:30:00Z`.
pub fn format_utc(unix_s: u64) -> String {
    // The format has four-digit years only.
    const LAST_S: u64 = 253_402_300_799;
    let time = UNIX_EPOCH + Duration::from_secs(unix_s.min(LAST_S));
    humantime::format_rfc3339_seconds(time).to_string()
}
