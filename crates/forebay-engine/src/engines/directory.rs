//! The driver of one node: an ordinary directory in the node's store. Nothing is started.

use crate::engine::{Coherence, Engine, EngineRequest, Missing, Promise};
use crate::host_facts::HostFacts;
use crate::steps::EnginePlan;

/// An ordinary directory.
pub struct Directory;

impl Engine for Directory {
    fn name(&self) -> &'static str {
        "directory"
    }

    fn about(&self) -> &'static str {
        "a directory in the store; for one node"
    }

    fn mounts(&self) -> bool {
        false
    }

    fn programs(&self) -> Vec<&str> {
        Vec::new()
    }

    fn promise(&self, _redundancy: u32, in_memory: bool, _nodes: &[HostFacts]) -> Promise {
        Promise {
            coherence: Coherence::Strict,
            atomic_append: true,
            locks: true,
            shared_mmap: true,
            striping: false,
            survives_server: true, // there is none
            survives_node: false,
            survives_restart: !in_memory,
            deviations: Vec::new(),
        }
    }

    fn missing(&self, _node: &HostFacts) -> Vec<Missing> {
        Vec::new()
    }

    fn plan(&self, request: &EngineRequest, nodes: &[HostFacts]) -> Result<EnginePlan, String> {
        let [node] = nodes else {
            return Err(format!("a directory is on one node, and the job has {}", nodes.len()));
        };
        Ok(EnginePlan { mount: request.data_directory(node), ..EnginePlan::default() })
    }

    fn recover(&self, request: &EngineRequest, nodes: &[HostFacts]) -> Result<EnginePlan, String> {
        self.plan(request, nodes)
    }
}
