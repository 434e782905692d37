//! What is recorded about the nodes of a job. Plain data.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The directory of a job's directory that shows the namespace.
pub(crate) const MOUNT: &str = "mount";
/// The directory of each node's private namespace.
pub(crate) const PRIVATE: &str = "private";

/// What is recorded about the nodes of a job, for the command that cleans up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodesUse {
    /// The engine.
    pub engine: String,
    /// The nodes, as the user or the scheduler wrote them.
    pub nodes: Vec<String>,
    /// The command lines that start their agents.
    pub commands: Vec<Vec<String>>,
    /// The job's directory on each node.
    pub directory: PathBuf,
    /// Whether the data are in memory: they end with the engine.
    pub in_memory: bool,
}

impl NodesUse {
    /// The directory that shows the namespace.
    pub fn mount(&self) -> PathBuf {
        self.directory.join(MOUNT)
    }
}
