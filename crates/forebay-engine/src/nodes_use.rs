//! What is recorded about the nodes of a job, for reports and for the command that cleans up.
//! Assumes the first node: `summary` and `can_restart` look at files in its directory.

use std::path::{Path, PathBuf};

use forebay_host::files;
use indicatif::HumanBytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The directory of a job's directory that shows the namespace.
const MOUNT: &str = "mount";
/// The directory of each node's private namespace.
pub const PRIVATE: &str = "private";
/// The file of the first node's directory that says how the data can be read after all processes ended.
const RECOVERY: &str = "recovery.json";
/// The file of the first node's directory with what each node stores.
const STORED: &str = "stored.json";
/// The file of the first node's directory with the servers whose data were given up.
const GIVEN_UP: &str = "given-up.json";

/// The directory that shows the namespace, in the job's directory on a node.
pub fn mount_in(directory: &Path) -> PathBuf {
    directory.join(MOUNT)
}

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
    /// The directory for data on each node; empty in records without this field.
    #[serde(default)]
    pub data: Vec<PathBuf>,
    /// Whether the data are in memory: they end with the engine.
    pub in_memory: bool,
    /// Whether the namespace is a mount point, and not a link or a directory.
    #[serde(default = "is_mounted")]
    pub mounted: bool,
    /// Copies of the data.
    #[serde(default = "one_copy")]
    pub redundancy: u32,
    /// The store of each node.
    #[serde(default)]
    pub stores: Vec<String>,
    /// What the namespace takes of each store at most, with all copies, in bytes; none if it is not in the stores.
    #[serde(default)]
    pub share_bytes: Option<u64>,
}

/// Engines of records without the field mount the namespace.
fn is_mounted() -> bool {
    true
}

fn one_copy() -> u32 {
    1
}

/// The nodes of an allocation, for reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodesSummary {
    /// The engine that gives them one namespace.
    pub engine: String,
    /// Their names. The first is that of `forebay run`.
    pub names: Vec<String>,
    /// Why operations on the job's files failed; none if they did not.
    pub failed: Option<String>,
    /// Whether data are lost: they were in memory, and a server with them ended. All, if operations failed; else some.
    #[serde(default)]
    pub data_lost: bool,
    /// Copies of the data.
    #[serde(default = "one_copy")]
    pub redundancy: u32,
    /// The store of each node, in the order of the names.
    #[serde(default)]
    pub stores: Vec<String>,
    /// What the namespace takes of each store at most, with all copies, in bytes; none if it is not in the stores.
    #[serde(default)]
    pub share_bytes: Option<u64>,
    /// What each node stores of the job's files, in bytes, about: what its servers took since the start. Null for a
    /// node that was not asked yet; empty if nobody asks.
    #[serde(default)]
    pub stored_bytes: Vec<Option<u64>>,
}

impl NodesSummary {
    /// Engine, nodes, copies and shares in one line.
    pub fn text(&self) -> String {
        let copies = match self.redundancy {
            1 => "one copy".to_owned(),
            copies => format!("{copies} copies"),
        };
        let mut text = format!("{} on {}; {copies}", self.engine, self.names.join(", "));
        if let Some(share_bytes) = self.share_bytes {
            text += &format!("; up to {} of each node", HumanBytes(share_bytes));
            let mut stores = self.stores.clone();
            stores.dedup();
            if let [store] = &stores[..] {
                text += &format!(" in {store}");
            }
        }
        if self.stored_bytes.iter().any(Option::is_some) {
            let stored = self.names.iter().zip(&self.stored_bytes);
            let stored = stored
                .filter_map(|(name, bytes)| Some(format!("{name} {}", HumanBytes((*bytes)?))));
            text += &format!("; stored: {}", stored.collect::<Vec<_>>().join(", "));
        }
        if let Some(failed) = &self.failed {
            text += &format!("; failed: {failed}");
        } else if self.data_lost {
            text += "; some data were lost";
        }
        text
    }
}

impl NodesUse {
    /// What a report says of the nodes.
    pub fn summary(&self) -> NodesSummary {
        NodesSummary {
            engine: self.engine.clone(),
            names: self.nodes.clone(),
            failed: None,
            data_lost: files::status(&self.given_up()).is_ok(),
            redundancy: self.redundancy,
            stores: self.stores.clone(),
            share_bytes: self.share_bytes,
            stored_bytes: files::read_json(&self.stored()).unwrap_or_default(),
        }
    }

    /// The directory that shows the namespace.
    pub fn mount(&self) -> PathBuf {
        mount_in(&self.directory)
    }

    /// The file that says how the data can be read after all processes of the engine ended.
    pub fn recovery(&self) -> PathBuf {
        self.directory.join(RECOVERY)
    }

    /// The file with what each node stores, which `forebay run` keeps up to date.
    pub fn stored(&self) -> PathBuf {
        self.directory.join(STORED)
    }

    /// The file with the servers whose data were given up.
    pub fn given_up(&self) -> PathBuf {
        self.directory.join(GIVEN_UP)
    }

    /// Whether the data can be read after all processes of the engine ended.
    pub fn can_restart(&self) -> bool {
        !self.in_memory && files::status(&self.recovery()).is_ok()
    }
}
