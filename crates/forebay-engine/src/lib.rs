//! Creates the allocation of a job and the view of the file system in which the job sees it, and plans what an engine
//! starts on several nodes.
//! Records each step in a ledger before taking it. Never copies data.

mod driver;
mod engine;
pub mod engines;
mod error;
mod host_facts;
mod ledger;
mod nodes_use;
mod options;
mod path_map;
mod profile;
mod provision;
mod runner;
mod steps;

pub use driver::{Driver, JobFacts, MOUNTED_BELOW, NodeFacts, Plan, PlannedAllocation};
pub use engine::{
    CapacityCommand, Coherence, Engine, EngineRequest, HANG_S_MAX, Layout, LocalFiles, Missing,
    PROBES, Promise,
};
pub use error::Error;
pub use host_facts::{CephFacts, FactsRequest, HostFacts, ProgramFacts, StoreFacts};
pub use ledger::{AllocationDirectory, JobAllocation, Ledger, Step};
pub use nodes_use::{NodesSummary, NodesUse, PRIVATE, mount_in};
pub use options::{AllocationProgress, StoreOptions, StoreUsed};
pub use path_map::PathMap;
pub use profile::{CommandProfile, Profile, ProfileEngine};
pub use provision::{Provisioned, Provisioner};
pub use steps::{
    DataLocation, EnginePlan, EngineStep, Fence, Loss, MissingServers, PlannedFile, Ready, Role,
    ServerGroup, Stop, serve_without,
};
