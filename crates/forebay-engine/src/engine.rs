//! The interface of engines. An engine gives a job one namespace over its nodes. A driver is a pure
//! function from a request and facts of the nodes to a plan. Never starts a process.

use std::path::PathBuf;

use forebay_store::Allocation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::host_facts::HostFacts;
use crate::nodes_use::mount_in;
use crate::steps::EnginePlan;

/// The attribute of a mount with the number of servers that its files are spread over, for libdatawarp.
pub(crate) const SERVERS_ATTRIBUTE: &str = "user.forebay.servers";

/// The directory of the files that the nodes write through their mounts, to see whether the engine answers.
pub const PROBES: &str = ".forebay-probes";
/// A mount that does not answer for so long, in seconds, is aborted, and a node that cannot be reached is lost. A busy
/// server and an engine that survives a lost one need some of it.
pub const HANG_S_MAX: u32 = 60;

/// When a node sees what another node wrote.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Coherence {
    /// When a file is opened after the writer closed it, as on NFS.
    CloseToOpen,
    /// At once, as on one machine (POSIX).
    Strict,
}

impl std::fmt::Display for Coherence {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(match self {
            Self::CloseToOpen => "close_to_open",
            Self::Strict => "strict",
        })
    }
}

impl std::str::FromStr for Coherence {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "strict" => Ok(Self::Strict),
            "close_to_open" => Ok(Self::CloseToOpen),
            _ => Err("write strict or close_to_open".to_owned()),
        }
    }
}

/// What an engine guarantees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Promise {
    /// When a node sees what another node wrote.
    pub coherence: Coherence,
    /// Whether appends of several nodes to one file keep every byte.
    pub atomic_append: bool,
    /// Whether locks exclude processes of other nodes.
    pub locks: bool,
    /// Whether files can be mapped with `MAP_SHARED`.
    pub shared_mmap: bool,
    /// Whether the data of one file are spread over the nodes.
    pub striping: bool,
    /// Whether the data survive the death of a server process.
    pub survives_server: bool,
    /// Whether the data survive the loss of a node.
    pub survives_node: bool,
    /// Whether the data survive the death of all processes of the engine.
    pub survives_restart: bool,
    /// Deviations from POSIX, one sentence each.
    pub deviations: Vec<String>,
}

/// What a node lacks for an engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Missing {
    /// The program or feature.
    pub what: String,
    /// How to get it.
    pub remedy: String,
    /// Whether a bundle of the engine has it.
    pub in_bundle: bool,
}

impl Missing {
    /// How a user who chooses the options gets it.
    pub fn remedy_or_bundle(&self) -> String {
        let bundle = if self.in_bundle { ", or name a bundle with --engine-root" } else { "" };
        format!("{}{bundle}", self.remedy)
    }
}

/// How files are distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// Bytes of a file that are next to each other on one server.
    pub stripe_unit_bytes: u64,
    /// The number of servers of a file; none: all.
    pub stripe_count: Option<u32>,
}

impl Default for Layout {
    fn default() -> Self {
        Self { stripe_unit_bytes: 1 << 20, stripe_count: None }
    }
}

/// Which files are stored on the node that creates them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LocalFiles {
    /// Those that the profile names.
    #[default]
    Named,
    /// The same, and those of directories that get the layout later.
    OnRequest,
    /// All that the profile does not name otherwise.
    All,
}

/// What a driver plans for.
#[derive(Debug, Clone)]
pub struct EngineRequest {
    /// Id of the job.
    pub id: String,
    /// The directory of the job on each node, which only the user can enter.
    pub directory: PathBuf,
    /// The capacity of the namespace in bytes.
    pub capacity_bytes: u64,
    /// Copies of the data on different nodes: 1 or 2.
    pub redundancy: u32,
    /// Metadata servers that share the names; none: as many as the engine has.
    pub metadata_servers: Option<u32>,
    /// How files are distributed.
    pub layout: Layout,
    /// The name of the user.
    pub user: String,
    /// The directories of the namespaces.
    pub namespaces: Vec<String>,
    /// The user and the group that own the namespaces.
    pub owner: (u32, u32),
    /// Random bytes for keys and identifiers.
    pub seed: [[u8; 16]; 3],
    /// The current time, in seconds since 1970.
    pub unix_s: u64,
}

impl EngineRequest {
    /// The directory that shows the namespace.
    pub fn mount(&self) -> PathBuf {
        mount_in(&self.directory)
    }

    /// The directory for a job's data in the store of a node.
    pub fn data_directory(&self, node: &HostFacts) -> PathBuf {
        Allocation::root_in(&node.store.directory, &self.id)
    }

    /// A node's share of the capacity, with all copies, in bytes.
    pub fn share_bytes(&self, nodes: usize) -> u64 {
        let all = self.capacity_bytes.saturating_mul(u64::from(self.redundancy));
        all.div_ceil(nodes.max(1) as u64)
    }
}

/// What is known before the nodes are asked for facts.
#[derive(Debug, Clone, Copy)]
pub struct CapacityCommand<'a> {
    /// Id of the job.
    pub id: &'a str,
    /// The name of the user.
    pub user: &'a str,
    /// The names of the nodes.
    pub names: &'a [&'a str],
    /// The node that runs the command.
    pub node: usize,
}

/// A driver.
pub trait Engine: Sync {
    /// Its name, for `--engine`.
    fn name(&self) -> &str;
    /// What it is, in a few words.
    fn about(&self) -> &str;
    /// Programs that it looks for on each node.
    fn programs(&self) -> Vec<&str>;
    /// Whether it looks for Ceph on each node.
    fn looks_for_ceph(&self) -> bool {
        false
    }
    /// Whether it limits the job to the capacity.
    fn enforces_capacity(&self) -> bool {
        true
    }
    /// Whether it mounts a file system in the job's directory, and not a link to one.
    fn mounts(&self) -> bool {
        true
    }
    /// How many files a node writes to see whether its servers answer. Which server has a file is by chance.
    fn probes(&self) -> usize {
        1
    }
    /// What it guarantees with this redundancy and store on these nodes. Without a node: what it guarantees on all.
    fn promise(&self, redundancy: u32, in_memory: bool, nodes: &[HostFacts]) -> Promise;
    /// The same engine with other local files; none: it cannot store files on the node that creates them.
    fn with_local_files(&self, _which: LocalFiles) -> Option<Box<dyn Engine>> {
        None
    }
    /// What a plan for these nodes would choose where there is a choice, a sentence each.
    fn choices(&self, _nodes: &[HostFacts]) -> Vec<String> {
        Vec::new()
    }
    /// What a node lacks; empty if it can serve.
    fn missing(&self, node: &HostFacts) -> Vec<Missing>;
    /// The words of a command that prints the available capacity in bytes; none: the stores of the nodes limit it.
    ///
    /// # Errors
    /// Describes what is wrong in the engine's options.
    fn capacity(&self, _asked: &CapacityCommand) -> Result<Option<Vec<String>>, String> {
        Ok(None)
    }
    /// The files to write and the processes to start. At least one node.
    ///
    /// # Errors
    /// Describes a request that the engine cannot keep.
    fn plan(&self, request: &EngineRequest, nodes: &[HostFacts]) -> Result<EnginePlan, String>;
    /// What to start to read the data again after all processes ended.
    ///
    /// # Errors
    /// Why the data cannot be read again.
    fn recover(&self, request: &EngineRequest, nodes: &[HostFacts]) -> Result<EnginePlan, String>;
}
