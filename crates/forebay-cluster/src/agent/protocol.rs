//! The messages between a session and the agent of a node: one JSON object a line, on the agent's
//! standard input and output. Each has the version of the protocol.

use std::path::PathBuf;

use forebay_engine::{EngineStep, FactsRequest, HostFacts, Role};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of these messages. Nodes with another version are refused.
pub const PROTOCOL_VERSION: u32 = 4;
/// The longest message in bytes.
pub const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// A message with its number. An answer has the number of its request.
#[derive(Debug, Serialize, Deserialize)]
pub struct Envelope<T> {
    /// [`PROTOCOL_VERSION`].
    pub version: u32,
    /// The number of the request.
    pub number: u64,
    /// The message.
    pub message: T,
}

/// The directories of a job on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The directory for data.
    pub data: PathBuf,
    /// Whether to make the private namespace of the node, in the directory for data.
    pub private: bool,
    /// Where to show it, if the job has no namespace over the nodes.
    pub shown_at: Option<PathBuf>,
    /// A second path of it, outside of the job's directories.
    pub node_local: Option<PathBuf>,
}

/// What the agent is asked to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// The first message. An agent of the same directory that still runs ends, and this one continues.
    Attach {
        /// The node's name, as the user or the scheduler wrote it.
        name: String,
        /// The job's directory on the node.
        directory: PathBuf,
        /// The agent ends itself and what it started after so long without a message, in seconds.
        lost_s_max: u32,
    },
    /// Look at the machine.
    Facts(FactsRequest),
    /// Make the job's directory, and one for data in the store, unless an earlier agent made them.
    Claim(Claim),
    /// Carry out a step.
    Start(EngineStep),
    /// Carry out a step that an earlier agent may have begun: it is not started twice.
    Resume(EngineStep),
    /// Answer at once.
    Ping,
    /// Look whether the processes live and the mount answers.
    Health {
        /// Files to write through the mount.
        probes: Vec<PathBuf>,
    },
    /// Let all operations on the mounts fail, also those that wait.
    Abort,
    /// Do what the program of the agent adds, such as copying for a staging. It may be repeated, and stops when the
    /// agent hears nothing any more.
    Task(Value),
    /// Mount the namespace again where the mount fails. No process of the job uses it.
    Remount {
        /// Files to write through the mount.
        probes: Vec<PathBuf>,
    },
    /// End the agent, and leave what it started running.
    Leave,
    /// Stop all steps, mounts first.
    Stop {
        /// Also remove the data and the job's directory.
        remove: bool,
    },
}

/// The answer of the agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The agent serves the directory.
    Attached {
        /// The version of Forebay.
        forebay: String,
        /// Its process ID.
        pid: i32,
        /// Whether the directory exists, from an earlier agent.
        is_claimed: bool,
    },
    /// The facts of the machine.
    Facts(Box<HostFacts>),
    /// The request was carried out.
    Done,
    /// The mount did not answer, and was started again.
    Remounted,
    /// It was not.
    Failed {
        /// Why.
        message: String,
        /// The last lines of the log of the step.
        log: String,
    },
    /// The state of the node.
    Health(NodeHealth),
    /// The answer to a task.
    Task(Value),
    /// What could not be stopped or removed: processes with their number, paths.
    Stopped {
        /// Empty: nothing is left.
        left: Vec<String>,
    },
}

/// The state of a node.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct NodeHealth {
    /// Processes that ended.
    pub ended: Vec<EndedStep>,
    /// Why the mount does not answer; none if it does.
    pub mount_error: Option<String>,
    /// Free bytes in the store.
    pub store_available_bytes: u64,
    /// What the servers took of memory or of the store since the namespace was mounted, in bytes; none if no server
    /// keeps data.
    #[serde(default)]
    pub stored_bytes: Option<u64>,
}

/// A process that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedStep {
    /// The step.
    pub id: String,
    /// What it was for.
    pub role: Role,
    /// How it ended, and the last lines of its log.
    pub how: String,
}
