//! What can go wrong with persistent allocations, with its remedy.

use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use forebay_directive::Position;
use forebay_host::users;
use forebay_store::persistent::Persistent;
use indicatif::HumanBytes;

/// What comes of an attempt, or why nothing does.
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// One that was made and cannot be found any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingAllocation {
    /// Its name.
    pub name: String,
    /// Where it was.
    pub root: PathBuf,
    /// It lay in memory, and so it is gone for good.
    pub in_memory: bool,
    /// It was made on another machine, which alone knows.
    pub host: Option<String>,
}

/// Why a persistent allocation cannot be made, used or destroyed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The machine refused.
    #[error(transparent)]
    Host(#[from] forebay_host::Error),
    /// The store refused.
    #[error(transparent)]
    Store(#[from] forebay_store::Error),
    /// There is none of that name.
    #[error("there is no persistent allocation {name} in {}", places(stores))]
    Unknown {
        /// The name.
        name: String,
        /// Where was looked.
        stores: Vec<PathBuf>,
        /// Those that are there.
        names: Vec<String>,
    },
    /// More than one store has it.
    #[error("there is a persistent allocation {name} in {}", places(stores))]
    Several {
        /// The name.
        name: String,
        /// The stores.
        stores: Vec<PathBuf>,
    },
    /// It was made, and is not there.
    #[error("the persistent allocation {} is not there: it was made as {}{}", .0.name, .0.root.display(), on_host(.0))]
    Missing(MissingAllocation),
    /// The name is taken.
    #[error("there is a persistent allocation {} already, {}", .0.name, origin(.0))]
    Exists(Box<Persistent>),
    /// It is no name.
    #[error("{name} {fault}")]
    BadName {
        /// What was given.
        name: String,
        /// What is wrong with it.
        fault: String,
    },
    /// There is less than asked for, and the user wants all or nothing.
    #[error("{} are asked for, and the store {store} can give {}", HumanBytes(*asked_bytes), HumanBytes(*usable_bytes))]
    LessThanAsked {
        /// Bytes asked for.
        asked_bytes: u64,
        /// Bytes to be had.
        usable_bytes: u64,
        /// Where.
        store: String,
    },
    /// There is no such group.
    #[error("there is no group {0}")]
    NoGroup(String),
    /// It is another user's.
    #[error("the persistent allocation {name} is {owner}'s")]
    NotOurs {
        /// The name.
        name: String,
        /// Whose it is.
        owner: String,
    },
    /// We may not look into it.
    #[error("the persistent allocation {name} is {owner}'s, and closed to you")]
    Closed {
        /// The name.
        name: String,
        /// Whose it is.
        owner: String,
    },
    /// Jobs use it.
    #[error("the persistent allocation {name} is in use{}", jobs_of(jobs))]
    InUse {
        /// The name.
        name: String,
        /// The jobs, as far as they are known.
        jobs: Vec<String>,
    },
    /// Jobs of other machines or containers may use it, and no lock decides.
    #[error(
        "nothing here tells whether others still use the persistent allocation {name}{}",
        jobs_of(jobs)
    )]
    OutOfSight {
        /// The name.
        name: String,
        /// The jobs.
        jobs: Vec<String>,
        /// Where they say so.
        uses: PathBuf,
    },
    /// Jobs that were killed, or whose data did not all arrive, stage out of it.
    #[error("the persistent allocation {name} holds what is to be staged out yet{}", jobs_of(jobs))]
    Undrained {
        /// The name.
        name: String,
        /// The jobs.
        jobs: Vec<String>,
    },
    /// It has expired.
    #[error("the persistent allocation {name} expired on {}", format_utc(*expires_unix_s))]
    Expired {
        /// The name.
        name: String,
        /// Since when, in seconds since 1970.
        expires_unix_s: u64,
    },
    /// Its record cannot be understood.
    #[error("the record of the persistent allocation {name} is damaged: {reason}")]
    Damaged {
        /// The name.
        name: String,
        /// Where it is.
        root: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// It is being destroyed.
    #[error("the persistent allocation {0} is being destroyed")]
    Vanishing(String),
    /// The record of the job cannot be changed.
    #[error(transparent)]
    Record(#[from] forebay_record::Error),
    /// What the script of a job wants with one.
    #[error("{}: {}: {error}", script.display(), place.on_line())]
    OfJob {
        /// The script.
        script: PathBuf,
        /// The directive.
        place: Position,
        /// What is wrong.
        error: Box<Self>,
    },
    /// A series runs one job many times and keeps nothing.
    #[error(
        "a job with persistent allocations cannot be run as a series: each run would change what stays"
    )]
    InSeries,
}

impl Error {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Host(_) => return None,
            Self::Record(error) => return error.hint(),
            Self::OfJob { error, .. } => return error.hint(),
            Self::BadName { .. } => "choose another name, for example proj1",
            Self::Store(_) => "choose another store with --store DIR",
            Self::Unknown { names, .. } if names.is_empty() => {
                "name the store it lies in with --store DIR, or make it: #BB create_persistent, or \
                 forebay persistent create"
            }
            Self::Unknown { names, .. } => {
                return Some(format!(
                    "there are: {}; other stores are named with --store DIR",
                    names.join(", ")
                ));
            }
            Self::Several { .. } => "name the store with --store DIR",
            Self::Missing(missing) => return Some(missing.hint()),
            Self::Exists(other) => {
                return Some(format!(
                    "use it with #DW persistentdw name={0}, take another name, or forebay persistent destroy {0}",
                    other.name
                ));
            }
            Self::LessThanAsked { .. } => {
                "leave out --strict-capacity, or choose a larger store with --store DIR"
            }
            Self::NoGroup(_) => "name one of those that the command id shows",
            Self::NotOurs { owner, .. } => return Some(format!("ask {owner} to destroy it")),
            Self::Closed { owner, .. } => {
                return Some(format!(
                    "ask {owner} for one that your group may use (--group, --mode 0770)"
                ));
            }
            Self::InUse { .. } => "wait for the jobs to end, or end them",
            Self::OutOfSight { name, uses, .. } => {
                return Some(format!(
                    "where they run: forebay persistent destroy {name}; if that machine is gone for good, first \
                     remove what is in {}",
                    uses.display()
                ));
            }
            Self::Undrained { name, .. } => {
                return Some(format!(
                    "forebay clean JOB stages it out; forebay persistent destroy --hurry {name} deletes it"
                ));
            }
            Self::Expired { name, .. } => {
                return Some(format!(
                    "the data are still there: copy what is wanted, then forebay persistent destroy {name}"
                ));
            }
            Self::Damaged { name, root, .. } => {
                return Some(format!(
                    "the data are in {}: copy what is wanted, then forebay persistent destroy {name}",
                    root.display()
                ));
            }
            Self::Vanishing(_) => "make another one",
            Self::InSeries => "tune a copy of the script with #DW jobdw instead",
        };
        Some(hint.to_owned())
    }
}

impl MissingAllocation {
    fn hint(&self) -> String {
        let Self { name, host, .. } = self;
        match host {
            Some(host) => format!("use and destroy it on {host}"),
            None if self.in_memory => format!(
                "it lay in memory and is gone: forebay persistent destroy {name} forgets it"
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

/// Who made it, and when.
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
    // Later times cannot be written so.
    const LAST_S: u64 = 253_402_300_799;
    let time = UNIX_EPOCH + Duration::from_secs(unix_s.min(LAST_S));
    humantime::format_rfc3339_seconds(time).to_string()
}
