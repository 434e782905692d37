//! What shows the file system on the nodes: Forebay's own client, or `ceph-fuse`. All nodes have the same one: the two
//! lock files in different ways.

use std::fmt::{Display, Formatter};

use crate::host_facts::HostFacts;

/// A client of CephFS for mounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MountClient {
    /// `forebay __mount`, which uses libcephfs.
    ForebayMount,
    /// That of Ceph.
    CephFuse,
}

impl MountClient {
    /// Both, the better one first.
    pub const ALL: [Self; 2] = [Self::ForebayMount, Self::CephFuse];

    /// Its name in profiles.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ForebayMount => "forebay-mount",
            Self::CephFuse => "ceph-fuse",
        }
    }

    /// What it does otherwise than POSIX.
    pub(super) fn deviations(self) -> &'static [&'static str] {
        match self {
            Self::ForebayMount => &DEVIATIONS[OF_CEPH_FUSE..],
            Self::CephFuse => &DEVIATIONS,
        }
    }
}

/// Why the better client cannot run on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) node: String,
    pub(super) reason: String,
}

/// The client of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Client {
    pub(super) which: MountClient,
    /// Why it is not the better one.
    pub(super) fault: Option<Fault>,
}

impl Client {
    /// The client that the profile names, else the better one if all nodes have it.
    pub(super) fn choose(named: Option<MountClient>, nodes: &[HostFacts]) -> Self {
        if named == Some(MountClient::CephFuse) {
            return Self { which: MountClient::CephFuse, fault: None };
        }
        let fault = nodes.iter().find_map(|node| {
            let reason = node.lacks_for_mount.clone()?;
            Some(Fault { node: node.name.clone(), reason })
        });
        let which = if fault.is_none() { MountClient::ForebayMount } else { MountClient::CephFuse };
        Self { which, fault }
    }
}

impl Display for Client {
    fn fmt(&self, formatter: &mut Formatter) -> std::fmt::Result {
        write!(formatter, "the mounts use {}", self.which.name())?;
        match &self.fault {
            Some(Fault { node, reason }) => write!(
                formatter,
                ", because {} cannot run on {node}: {reason}",
                MountClient::ForebayMount.name()
            ),
            None => Ok(()),
        }
    }
}

/// The first of them are those of `ceph-fuse` alone.
const OF_CEPH_FUSE: usize = 8;
/// Each is measured; docs/explanation has the checks.
const DEVIATIONS: [&str; 11] = [
    "Appends of several nodes to one file lose bytes, also when they take turns while the file stays open.",
    "close returns before the flock of the file is released; fcntl locks are kept.",
    "A read over the end of a file that another node makes longer can return wrong bytes.",
    "Files cannot be mapped with MAP_SHARED: mmap fails with ENODEV.",
    "The times of a directory can lag behind changes of its names.",
    "A rename can fail with ESTALE after another node moved the directory.",
    "A file that two nodes rename at the same time can be renamed for both, and the use of its new name can hang for ever.",
    "After a rename replaces one name of a file, its other names can be missing (ENOENT).",
    "renameat2 with RENAME_NOREPLACE or RENAME_EXCHANGE fails with EINVAL.",
    "Deadlocks of fcntl locks are not detected: no EDEADLK.",
    "A lease (F_SETLEASE) notices only what processes of its own node open.",
];
