//! The driver of Ceph for one job: monitors, a storage daemon and a mount on every node, metadata servers,
//! no manager. All run as the user, with keys of the allocation, and listen on the job's network only.

mod client;
mod cluster;
mod placement;
mod settings;

use crate::engine::{Coherence, Engine, EngineRequest, Layout, LocalFiles, Missing, Promise};
use crate::host_facts::{CephFacts, HostFacts};
use crate::steps::EnginePlan;
pub use client::MountClient;
use client::{Client, Fault};
use cluster::Cluster;
pub use placement::{LayoutScope, NamedLayout, Placement};

/// Ceph, started for the job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ceph {
    /// What shows the file system on the nodes; none: the best that all nodes have.
    pub client: Option<MountClient>,
    /// The layouts of new files by names: the first that matches counts.
    pub layouts: Vec<NamedLayout>,
    /// Other files that are stored on the node that creates them.
    pub local_files: LocalFiles,
}

impl Engine for Ceph {
    fn name(&self) -> &'static str {
        "ceph"
    }

    fn about(&self) -> &'static str {
        "CephFS that Forebay starts for the job"
    }

    fn programs(&self) -> Vec<&str> {
        Vec::new()
    }

    fn looks_for_ceph(&self) -> bool {
        true
    }

    fn probes(&self) -> usize {
        8 // the 16 files of two nodes miss a storage daemon in one of 30,000 jobs
    }

    fn promise(&self, redundancy: u32, in_memory: bool, nodes: &[HostFacts]) -> Promise {
        let is_redundant = redundancy > 1;
        let client = Client::choose(self.client, nodes).which;
        let is_own = client == MountClient::ForebayMount;
        Promise {
            coherence: Coherence::Strict,
            atomic_append: is_own,
            locks: is_own,
            shared_mmap: is_own,
            striping: true,
            survives_server: is_redundant,
            survives_node: is_redundant,
            survives_restart: !in_memory,
            deviations: client.deviations().iter().map(|&text| text.to_owned()).collect(),
        }
    }

    fn choices(&self, nodes: &[HostFacts]) -> Vec<String> {
        let client = Client::choose(self.client, nodes).to_string();
        let local = self.layouts.iter().filter(|layout| layout.placement == Placement::Local);
        let all = (self.local_files == LocalFiles::All)
            .then(|| "files are stored on the node that creates them".to_owned());
        [client].into_iter().chain(local.map(NamedLayout::to_string)).chain(all).collect()
    }

    fn with_local_files(&self, which: LocalFiles) -> Option<Box<dyn Engine>> {
        Some(Box::new(Self { local_files: which, ..self.clone() }))
    }

    fn missing(&self, node: &HostFacts) -> Vec<Missing> {
        let absent = match &node.ceph {
            Some(CephFacts::Found(_)) => &[][..],
            Some(CephFacts::Missing(missing)) => missing,
            None => &[("ceph-mon".to_owned(), "ceph-mon".to_owned())],
        };
        let mut missing: Vec<_> = absent
            .iter()
            .map(|(what, package)| Missing {
                what: what.clone(),
                remedy: format!("install the package {package} on {}", node.name),
                in_bundle: true,
            })
            .collect();
        if !node.has_fuse {
            missing.push(Missing {
                what: "/dev/fuse that you can open".to_owned(),
                remedy: format!("as root on {}: modprobe fuse; chmod 666 /dev/fuse", node.name),
                in_bundle: false,
            });
        }
        if !node.can_mount_fuse {
            missing.push(Missing {
                what: "fusermount3".to_owned(),
                remedy: format!("install the package fuse3 on {}", node.name),
                in_bundle: false,
            });
        }
        missing
    }

    fn plan(&self, request: &EngineRequest, nodes: &[HostFacts]) -> Result<EnginePlan, String> {
        if !(1..=2).contains(&request.redundancy) {
            return Err(format!(
                "a redundancy of {} is not offered: write 1 or 2",
                request.redundancy
            ));
        }
        if request.redundancy as usize > nodes.len() {
            return Err(format!(
                "a redundancy of 2 needs two nodes, and the job has {}",
                nodes.len()
            ));
        }
        check_metadata_servers(request, nodes.len())?;
        check_layout(request.layout, nodes.len())?;
        self.check_layouts(nodes)?;
        check_versions(nodes)?;
        // A quota of 0 bytes would be none.
        if let (0, Some(node)) =
            (request.capacity_bytes, nodes.iter().min_by_key(|node| node.store.usable_bytes))
        {
            return Err(format!(
                "store {} of node {} has no space: name another one with --store",
                node.store.name, node.name
            ));
        }
        check_addresses(nodes)?;
        Ok(Cluster::new(request, nodes, self.client(nodes)?, self).plan())
    }

    fn recover(&self, request: &EngineRequest, nodes: &[HostFacts]) -> Result<EnginePlan, String> {
        if nodes.iter().any(|node| node.store.in_memory) {
            return Err("the data were in memory, and ended with the storage daemons".to_owned());
        }
        Ok(Cluster::new(request, nodes, self.client(nodes)?, self).restart())
    }
}

impl Ceph {
    /// Whether files can be stored on the node that creates them.
    fn has_local(&self) -> bool {
        self.local_files != LocalFiles::Named
            || self.layouts.iter().any(|layout| layout.placement == Placement::Local)
    }

    /// The client sets the layouts of new files.
    fn check_layouts(&self, nodes: &[HostFacts]) -> Result<(), String> {
        for NamedLayout { pattern, stripe_unit_bytes, .. } in &self.layouts {
            let Some(stripe_unit_bytes) = *stripe_unit_bytes else { continue };
            check_layout(Layout { stripe_unit_bytes, stripe_count: None }, nodes.len())
                .map_err(|error| format!("layout of {pattern}: {error}"))?;
        }
        let client = Client::choose(self.client, nodes);
        match client.which {
            MountClient::CephFuse if !self.layouts.is_empty() => {
                Err(format!("layouts of names need the client forebay-mount, and {client}"))
            }
            MountClient::CephFuse if self.local_files == LocalFiles::All => {
                Err(format!("placement=local needs the client forebay-mount, and {client}"))
            }
            _ => Ok(()),
        }
    }

    /// The client of the mounts.
    fn client(&self, nodes: &[HostFacts]) -> Result<MountClient, String> {
        let chosen = Client::choose(self.client, nodes);
        match (self.client, chosen.fault) {
            (Some(MountClient::ForebayMount), Some(Fault { node, reason })) => {
                Err(format!("the client forebay-mount cannot run on {node}: {reason}"))
            }
            _ => Ok(chosen.which),
        }
    }
}

/// The daemons use IPv4, and need an address that the other nodes reach.
fn check_addresses(nodes: &[HostFacts]) -> Result<(), String> {
    let of_loopback = |node: &&HostFacts| nodes.len() > 1 && node.address.is_loopback();
    if let Some(node) = nodes.iter().find(of_loopback) {
        return Err(format!(
            "node {} reaches the others from {} only: give it an address of their network",
            node.name, node.address
        ));
    }
    if let Some(node) = nodes.iter().find(|node| node.address.is_ipv6()) {
        return Err(format!(
            "node {} reaches the others from {}: the engine needs IPv4 addresses, or names that have one",
            node.name, node.address
        ));
    }
    Ok(())
}

/// Daemons of different releases were not tested together.
fn check_versions(nodes: &[HostFacts]) -> Result<(), String> {
    let version = |node: &HostFacts| match &node.ceph {
        Some(CephFacts::Found(programs)) => programs.version.clone(),
        _ => String::new(), // the session refuses such a node
    };
    let Some(first) = nodes.first() else { return Ok(()) };
    match nodes.iter().find(|node| version(node) != version(first)) {
        None => Ok(()),
        Some(other) => Err(format!(
            "node {} has Ceph {}, and node {} has {}: install the same on all",
            first.name,
            version(first),
            other.name,
            version(other)
        )),
    }
}

/// More are of no use to a job, and nobody tried them.
const METADATA_SERVERS_MAX: u32 = 16;

fn check_metadata_servers(request: &EngineRequest, nodes: usize) -> Result<(), String> {
    let servers = request.metadata_servers.unwrap_or(1);
    if !(1..=METADATA_SERVERS_MAX).contains(&servers) {
        return Err(format!(
            "{servers} metadata servers are not offered: write 1 to {METADATA_SERVERS_MAX}"
        ));
    }
    let standby = usize::from(request.redundancy > 1);
    let needed = servers as usize + standby;
    if needed > nodes {
        let and = if standby == 0 { "" } else { ", and one that takes over," };
        return Err(format!(
            "{servers} metadata servers{and} need {needed} nodes, and the job has {nodes}"
        ));
    }
    Ok(())
}

/// Ceph's limits for a layout: a unit is a multiple of the first, and an object at most the second.
const UNIT_BYTES: u64 = 64 << 10;
const OBJECT_BYTES_MAX: u64 = 128 << 20;

fn check_layout(layout: Layout, nodes: usize) -> Result<(), String> {
    let Layout { stripe_unit_bytes: bytes, stripe_count } = layout;
    if bytes == 0 || !bytes.is_multiple_of(UNIT_BYTES) || bytes > OBJECT_BYTES_MAX {
        return Err(format!(
            "stripe_bytes of {bytes} is not offered: write a multiple of {UNIT_BYTES}, at most {OBJECT_BYTES_MAX}"
        ));
    }
    match stripe_count {
        Some(count) if count as usize != nodes => Err(format!(
            "a stripe count of {count} is not offered: each file is spread over all {nodes} nodes"
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
