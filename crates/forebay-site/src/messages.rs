//! What the control host asks a node, and what the node answers: one JSON line each, as the content of a credential.
//! Assumes that `auth` has checked who sent a message. Never takes a message of another version.

use std::path::{Path, PathBuf};

use forebay_directive::{AccessMode, Direction, Stage};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::Error;

/// The version of these messages. Both sides refuse any other.
pub const VERSION: u32 = 4;
/// Bytes of a credential at most. MUNGE takes 1 MiB.
pub const LINE_BYTES_MAX: usize = 1 << 20;
/// Bytes of a message at most. A credential is a third longer.
pub const MESSAGE_BYTES_MAX: usize = 700 << 10;

/// A request to a node.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Request {
    /// [`VERSION`] of the sender.
    pub version: u32,
    /// The name of the node: another node refuses it.
    pub node: String,
    /// A random text that the answer repeats.
    pub nonce: String,
    /// What to do.
    pub operation: Operation,
}

/// The answer of a node.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Answer {
    /// [`VERSION`] of the node.
    pub version: u32,
    /// That of the request.
    pub nonce: String,
    /// The result.
    pub outcome: Outcome,
}

/// The directory of an allocation, and its owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolAllocation {
    /// The pool.
    pub pool: String,
    /// The directory of the pool, as the control host has it.
    pub path: String,
    /// The name of the directory in the pool.
    pub name: String,
    /// The owner.
    pub user: u32,
    /// The owner's group, or the one for which a persistent allocation is.
    pub group: u32,
    /// Whether members of the group use it, too.
    pub is_shared: bool,
    /// Whether it is one directory for all nodes, or that of one node.
    pub access: AccessMode,
    /// The engine that gives the nodes one namespace; none where a directory of the pool is the namespace.
    pub engine: Option<String>,
}

impl PoolAllocation {
    /// The path of its directory.
    pub fn directory(&self) -> PathBuf {
        PathBuf::from(&self.path).join(&self.name)
    }

    /// The path of its namespace.
    pub fn namespace(&self) -> PathBuf {
        let directory = self.directory();
        let whole = match self.engine {
            Some(_) => forebay_engine::mount_in(&engine_directory(&directory)),
            None => directory,
        };
        whole.join(self.access.directory())
    }
}

/// The directory of an engine on each node, in that of the allocation.
pub fn engine_directory(allocation: &Path) -> PathBuf {
    allocation.join("engine")
}

/// What to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum Operation {
    /// Make the directory and its namespace. One that exists stays.
    Create {
        /// The directory.
        place: PoolAllocation,
        /// Its size, which the file system enforces where the pool has a quota.
        capacity_bytes: u64,
        /// What nodes of an engine show each other; none without an engine.
        key: Option<String>,
    },
    /// Start the engine on the nodes, the first of which this one is, or say how far it is.
    Start {
        /// The directory.
        place: PoolAllocation,
        /// The names and ports of the nodes.
        nodes: Vec<(String, u16)>,
        /// The size of the namespace.
        capacity_bytes: u64,
        /// Copies of the data.
        redundancy: u32,
        /// As of `Stage`.
        attempt: String,
    },
    /// Whether a user sees the namespace on this node.
    Check {
        /// The directory.
        place: PoolAllocation,
        /// The owner, or a member of the group.
        user: u32,
        /// The group in which the user looks.
        group: u32,
    },
    /// Start a staging, or say how far it is.
    Stage {
        /// The directory.
        place: PoolAllocation,
        /// What to stage.
        staging: Staging,
        /// The attempt: a new one starts again what has ended, the same one asks for the result.
        attempt: String,
    },
    /// End stagings, and remove the directory with its content.
    Remove {
        /// The directory.
        place: PoolAllocation,
        /// As of `Stage`.
        attempt: String,
        /// Whether it was made for certain. If it is missing then, the pool must have its mark.
        is_made: bool,
    },
    /// What the daemon has done since it started.
    Count,
    /// The directories of a pool.
    List {
        /// The pool.
        pool: String,
        /// Its directory, as the control host has it.
        path: String,
    },
}

/// A staging.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Staging {
    /// Into the allocation or out of it.
    pub direction: Direction,
    /// The directives.
    pub stages: Vec<Stage>,
    /// Names of persistent allocations, and of their directories in the pool.
    pub persistent: Vec<(String, PoolAllocation)>,
    /// The size of the job's own allocation; of an allocation on nodes, that of this node.
    pub capacity_bytes: u64,
    /// The directory below each destination that gets what is staged out, named like the node; none for the
    /// destination itself.
    pub below: Option<String>,
}

/// How far a staging is, as the process of the owner says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Whether it waits until other tasks of the node have ended.
    pub is_waiting: bool,
    /// Files to copy; 0 before they are counted.
    pub files: u64,
    /// Bytes to copy.
    pub bytes: u64,
    /// Of them the bytes that are copied.
    pub bytes_done: u64,
}

/// The result of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "result", rename_all = "kebab-case")]
pub enum Outcome {
    /// It is done.
    Done {
        /// Staged files.
        files: u64,
        /// Their bytes; of a removal, those that were in the allocation.
        bytes: u64,
        /// What the site should know, in one line.
        #[serde(default)]
        note: Option<String>,
    },
    /// It goes on.
    Running {
        /// How far it is.
        #[serde(default)]
        progress: Progress,
    },
    /// It failed.
    Failed {
        /// Why, in one line.
        reason: String,
        /// Whether another try could not help.
        is_final: bool,
    },
    /// The node does not do such a thing.
    Refused {
        /// Why, in one line.
        reason: String,
    },
    /// What the daemon has done since it started.
    Counts {
        /// The numbers.
        counts: Counts,
    },
    /// The directories of a pool, with the IDs of their owners.
    Names {
        /// Name and owner of each.
        names: Vec<(String, u32)>,
    },
}

/// What a daemon has done since it started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Tasks that run.
    pub running: u64,
    /// Tasks that wait for their turn.
    pub waiting: u64,
    /// Stagings into allocations.
    pub stage_in: TaskCounts,
    /// Stagings out of allocations.
    pub stage_out: TaskCounts,
    /// Removals of allocations.
    pub removal: TaskCounts,
    /// Processes of owners that somebody ended.
    pub interruptions: u64,
    /// Processes of owners that were killed because they did nothing.
    pub idle: u64,
}

/// Tasks of one kind that have ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskCounts {
    /// Tasks that are done.
    pub done: u64,
    /// Tasks that failed.
    pub failed: u64,
    /// Files of the tasks that are done.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The content of a message.
///
/// # Errors
/// If it is longer than [`MESSAGE_BYTES_MAX`].
pub fn written(message: &impl Serialize) -> Result<Vec<u8>, Error> {
    let text = serde_json::to_vec(message).map_err(|error| Error::new(error.to_string()))?;
    if text.len() > MESSAGE_BYTES_MAX {
        let message = format!(
            "the request has {} bytes; at most {MESSAGE_BYTES_MAX} are possible",
            text.len()
        );
        return Err(Error::new(message)
            .with_hint("stage directories or a list instead of many single files"));
    }
    Ok(text)
}

/// Reads a message of this version.
///
/// # Errors
/// If it has another version, or is none.
pub fn read<T: DeserializeOwned>(text: &[u8], sender: &str) -> Result<T, Error> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    let wrong = |error: serde_json::Error| {
        Error::new(format!("{sender} sent no message of Forebay: {error}"))
    };
    let Versioned { version } = serde_json::from_slice(text).map_err(wrong)?;
    if version != VERSION {
        let message = format!(
            "{sender} speaks version {version} of the messages, this program version {VERSION}"
        );
        return Err(Error::new(message)
            .with_hint("install one version of Forebay on the control host and all nodes"));
    }
    serde_json::from_slice(text).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_of_another_version_is_refused_even_with_other_fields() {
        let error = read::<Request>(br#"{"version":1,"else":1}"#, "n1").expect_err("version");
        assert!(
            error.to_string().starts_with(
                "n1 speaks version 1 of the messages, this program version 4; install"
            )
        );
        let error = read::<Request>(b"[]", "n1").expect_err("none").to_string();
        assert!(error.starts_with("n1 sent no message of Forebay"), "{error}");
        assert!(written(&"x".repeat(MESSAGE_BYTES_MAX)).is_err());
    }
}
