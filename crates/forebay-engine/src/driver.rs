//! Drivers: each turns the facts of a job and a node into a plan. Assumes no access to the machine,
//! so tests need none. Never carries a plan out: `Runner` does.

use std::path::{Path, PathBuf};

use forebay_directive::AccessMode;
use forebay_host::namespace::Mount;
use forebay_store::{Allocation, Store};

use crate::ledger::AllocationDirectory;
use crate::options::StoreUsed;
use crate::path_map::PathMap;

/// The parent directory of an allocation in memory, as the job sees it. It exists only in the view, so
/// other processes cannot remove it. Jobs that clear their directory for temporary files do not touch it.
pub const MOUNTED_BELOW: &str = "/mnt/forebay";

/// The facts of a job.
#[derive(Debug)]
pub struct JobFacts<'a> {
    /// Id of the job.
    pub id: &'a str,
    /// Namespaces of the allocation.
    pub access: &'a [AccessMode],
    /// The second path of the private namespace.
    pub node_local: Option<&'a Path>,
    /// Directories that the job sees under other paths.
    pub maps: &'a [PathMap],
}

/// The facts of a node: the store and the size chosen there.
#[derive(Debug, Clone)]
pub struct NodeFacts {
    /// The store of the allocation.
    pub store: Store,
    /// The size of the allocation.
    pub used: StoreUsed,
}

/// The plan for a job. Forebay creates the allocation first, then the view with its mounts, in order.
#[derive(Debug, PartialEq, Eq)]
pub struct Plan {
    /// The allocation; none if the job requests none.
    pub allocation: Option<PlannedAllocation>,
    /// The mounts; empty if the job needs no view.
    pub mounts: Vec<Mount>,
}

/// An allocation to create.
#[derive(Debug, PartialEq, Eq)]
pub struct PlannedAllocation {
    /// The place of the allocation.
    pub place: AllocationDirectory,
    /// The store's directory that contains it; none: a mount of the plan creates it.
    pub store: Option<PathBuf>,
    /// The directories in it, one for each namespace.
    pub namespaces: Vec<&'static str>,
}

/// Creates a plan.
pub type Driver = fn(&JobFacts, &NodeFacts) -> Plan;

/// The driver of a store.
pub fn driver_of(store: &Store) -> Driver {
    match store {
        Store::Directory { .. } => own_directory,
        Store::Memory { .. } => private_memory,
    }
}

/// A directory for the job in the directory of the store.
fn own_directory(job: &JobFacts, node: &NodeFacts) -> Plan {
    let Store::Directory { path: store, .. } = &node.store else {
        return without_allocation(job);
    };
    let root = Allocation::root_in(store, job.id);
    let mounts = shown_directories(job, Some(&root));
    let planned = planned(job, node, root, Some(store.clone()));
    Plan { allocation: Some(planned), mounts }
}

/// A memory file system in the job's view.
fn private_memory(job: &JobFacts, node: &NodeFacts) -> Plan {
    let root = Path::new(MOUNTED_BELOW).join(job.id);
    let huge = node.store == Store::Memory { huge: true };
    let size_bytes = node.used.capacity_bytes;
    let planned = planned(job, node, root.clone(), None);
    let mut mounts = vec![Allocation::mount(&root, size_bytes, huge, &planned.namespaces)];
    mounts.extend(shown_directories(job, Some(&root)));
    Plan { allocation: Some(planned), mounts }
}

/// The plan for a job without allocation: its maps.
pub fn without_allocation(job: &JobFacts) -> Plan {
    Plan { allocation: None, mounts: shown_directories(job, None) }
}

fn planned(
    job: &JobFacts,
    node: &NodeFacts,
    root: PathBuf,
    store: Option<PathBuf>,
) -> PlannedAllocation {
    PlannedAllocation {
        place: AllocationDirectory {
            root,
            mounted: store.is_none(),
            capacity_bytes: node.used.capacity_bytes,
        },
        store,
        namespaces: job.access.iter().map(|mode| mode.directory()).collect(),
    }
}

fn shown_directories(job: &JobFacts, root: Option<&Path>) -> Vec<Mount> {
    let private = AccessMode::Private.directory();
    let local = job.node_local.iter().zip(root);
    let local =
        local.map(|(at, root)| Mount::Directory { at: at.to_path_buf(), from: root.join(private) });
    let maps = job
        .maps
        .iter()
        .map(|map| Mount::Directory { at: map.path.clone(), from: map.directory.clone() });
    maps.chain(local).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(store: Store) -> NodeFacts {
        let used = StoreUsed {
            store: store.to_string(),
            in_memory: store.in_memory(),
            nodes: 1,
            copies: 1,
            enforced: store.enforces_capacity(),
            capacity_bytes: 4096,
            asked_bytes: None,
        };
        NodeFacts { store, used }
    }

    fn directory(at: &str, from: &str) -> Mount {
        Mount::Directory { at: at.into(), from: from.into() }
    }

    #[test]
    fn each_driver_plans_its_allocation_and_what_the_job_sees() {
        let nvme = Store::Directory { path: "/nvme".into(), in_memory: false };
        let maps = [PathMap { path: "/in".into(), directory: "/pfs/in".into() }];
        let job = JobFacts {
            id: "7",
            access: &[AccessMode::Striped, AccessMode::Private],
            node_local: Some(Path::new("/mnt/bb/me")),
            maps: &maps,
        };
        let namespaces: Vec<_> = job.access.iter().map(|mode| mode.directory()).collect();
        let private = AccessMode::Private.directory();
        let plan = driver_of(&nvme)(&job, &node(nvme.clone()));
        let root = Allocation::root_in(Path::new("/nvme"), "7");
        let local = directory("/mnt/bb/me", &root.join(private).to_string_lossy());
        assert_eq!(plan.mounts, [directory("/in", "/pfs/in"), local]);
        let planned = plan.allocation.expect("an allocation");
        assert_eq!(planned.store.as_deref(), Some(Path::new("/nvme")));
        assert!(planned.place.root == root && !planned.place.mounted);
        assert_eq!(planned.namespaces, namespaces);

        for huge in [false, true] {
            let memory = Store::Memory { huge };
            let plan = driver_of(&memory)(&job, &node(memory.clone()));
            let root = Path::new("/mnt/forebay/7");
            let file_system = Allocation::mount(root, 4096, huge, &namespaces);
            assert_eq!(plan.mounts[0], file_system, "it is there before it is shown");
            let local = directory("/mnt/bb/me", &root.join(private).to_string_lossy());
            assert_eq!(plan.mounts[1..], [directory("/in", "/pfs/in"), local]);
            let planned = plan.allocation.expect("an allocation");
            assert!(planned.place.mounted && planned.place.root == root);
            assert_eq!((planned.store, planned.place.capacity_bytes), (None, 4096));
        }

        let plan = without_allocation(&job);
        assert_eq!(plan.mounts, [directory("/in", "/pfs/in")]);
        assert_eq!(plan.allocation, None);
    }
}
