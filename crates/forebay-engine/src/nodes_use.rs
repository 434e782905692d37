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
    /// Whether the namespace is a mount point, and not a link or a directory.
    #[serde(default = "is_mounted")]
    pub mounted: bool,
}

/// Engines of records without the field mount the namespace.
fn is_mounted() -> bool {
    true
}

/// The nodes of an allocation, for reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NodesSummary {
    /// The engine that gives them one namespace.
    pub engine: String,
    /// Their names. The first is that of `forebay run`.
    pub names: Vec<String>,
    /// Why operations on the job's files failed; none if they did not.
    pub failed: Option<String>,
}

impl NodesUse {
    /// What a report says of the nodes.
    pub fn summary(&self) -> NodesSummary {
        NodesSummary { engine: self.engine.clone(), names: self.nodes.clone(), failed: None }
    }

    /// The directory that shows the namespace.
    pub fn mount(&self) -> PathBuf {
        self.directory.join(MOUNT)
    }
}
