//! What the first node's directory says of an engine, for a later process that reads its data or watches it. Plain data.

use std::path::PathBuf;

use forebay_engine::{EnginePlan, EngineStep, Fence, Loss, Promise, ServerGroup};
use serde::{Deserialize, Serialize};

/// How the data can be read after processes of the engine ended.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Recovery {
    /// What to start, or why the data cannot be read.
    pub(crate) plan: Result<EnginePlan, String>,
    /// Its servers.
    pub(crate) servers: Vec<ServerGroup>,
    /// Whether it goes on without a node.
    pub(crate) survives_node: bool,
    /// What watches the nodes while the engine runs; none in records without this field.
    #[serde(default)]
    pub(crate) watch: Option<WatchPlan>,
}

/// What watches the nodes of an engine that runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct WatchPlan {
    pub(crate) engine: String,
    pub(crate) promise: Promise,
    pub(crate) servers: Vec<ServerGroup>,
    pub(crate) fences: Vec<Fence>,
    pub(crate) losses: Vec<Loss>,
    pub(crate) announce_loss: Vec<EngineStep>,
    /// Small files in the namespace for each node.
    pub(crate) probes: Vec<Vec<PathBuf>>,
}
