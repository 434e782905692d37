//! Where data are placed: pools, their placement groups on the storage daemons, and layouts by names. Pure.
//! Assumes that pools get their numbers in the order in which they are made.

use std::fmt;

pub(super) use forebay_ceph::NAMES_POOL as NAMES;
use forebay_ceph::{DATA_POOL, LOCAL_POOL};
use serde_json::{Map, Value, json};

/// Placement groups for each storage daemon: enough to distribute objects evenly.
const GROUPS_PER_DAEMON: usize = 16;
/// More daemons have fewer each, because the time that the monitor needs for the place of a group grows with the daemons:
/// 2 ms with 256, 10 ms with 1,000. One of them has at most a quarter more data than the average then.
const DAEMONS_WITH_ALL_GROUPS: usize = 256;
const GROUPS_PER_DAEMON_MIN: usize = 4;
/// More time for the places of all groups, for each node: with 1,000 nodes the monitor needs about 40 ms for a node.
const PLACEMENT_MS_PER_NODE: usize = 150;
/// Fewer are not distributed evenly.
const GROUPS_MIN: usize = 64;
/// Placement groups for names, and for the files of one node.
const GROUPS_SMALL: usize = 16;

/// Which new files have a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayoutScope {
    /// Files with such names.
    Files,
    /// All files below directories with such names.
    Directories,
}

impl LayoutScope {
    /// Its key in a profile, and in the words of a mount.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Files => "names",
            Self::Directories => "directories",
        }
    }
}

/// Which storage daemons have the data of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Those of all nodes in turn.
    #[default]
    Striped,
    /// That of the node that creates the file.
    Local,
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(if *self == Self::Local { "local" } else { "striped" })
    }
}

/// The layout of new files by names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedLayout {
    /// What has a name that matches.
    pub named: LayoutScope,
    /// A pattern as that of a shell, for the last part of the path.
    pub pattern: String,
    /// Bytes of a file that are next to each other on one server; none: as in the whole namespace.
    pub stripe_unit_bytes: Option<u64>,
    /// Where the data are placed.
    pub placement: Placement,
}

impl fmt::Display for NamedLayout {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let files = match self.named {
            LayoutScope::Files => format!("files named {}", self.pattern),
            LayoutScope::Directories => format!("files below directories named {}", self.pattern),
        };
        match self.placement {
            Placement::Local => write!(f, "{files} are stored on the node that creates them"),
            Placement::Striped => write!(f, "{files} are spread over all nodes"),
        }
    }
}

/// The pool of files that a node has created.
pub(super) fn local_pool(node: usize) -> String {
    format!("{LOCAL_POOL}.{}", node + 1)
}

/// A pool to make.
pub(super) struct Pool {
    pub(super) name: String,
    pub(super) groups: usize,
    /// The node whose storage daemon has the first copy of each object; none: all in turn.
    node: Option<usize>,
}

/// All pools in the order of their making. Local pools only where they may be used. One copy of the names is on the
/// first node, where the monitor is: then the loss of another storage daemon takes no names along.
pub(super) fn pools(nodes: usize, has_local: bool, copies: usize) -> Vec<Pool> {
    let pool = |name: &str, groups, node| Pool { name: name.to_owned(), groups, node };
    let is_large = nodes > DAEMONS_WITH_ALL_GROUPS;
    let per_daemon = if is_large { GROUPS_PER_DAEMON_MIN } else { GROUPS_PER_DAEMON };
    let groups = (nodes * per_daemon).next_power_of_two().max(GROUPS_MIN);
    let groups_of_node = if is_large { GROUPS_PER_DAEMON_MIN } else { GROUPS_SMALL };
    let mut pools =
        vec![pool(NAMES, GROUPS_SMALL, (copies == 1).then_some(0)), pool(DATA_POOL, groups, None)];
    if has_local {
        pools.push(pool(LOCAL_POOL, GROUPS_SMALL, None));
        pools.extend((0..nodes).map(|node| pool(&local_pool(node), groups_of_node, Some(node))));
    }
    pools
}

/// How many seconds the places of all groups may take beyond the usual time of an action.
pub(super) fn placement_s_more(nodes: usize) -> u32 {
    (nodes * PLACEMENT_MS_PER_NODE / 1000) as u32
}

impl Pool {
    /// The command to the monitors that makes it.
    pub(super) fn create(&self) -> Value {
        json!({"prefix": "osd pool create", "pool": self.name, "pg_num": self.groups, "pgp_num": self.groups})
    }

    /// The storage daemons of each placement group of the pool with this number, in turn: without a manager nobody
    /// balances them.
    pub(super) fn placement(
        &self,
        number: usize,
        nodes: usize,
        copies: usize,
    ) -> Vec<Map<String, Value>> {
        let place = |group: usize| {
            let first = self.node.unwrap_or(group);
            let daemons: Vec<_> = (0..copies).map(|copy| (first + copy) % nodes).collect();
            let id = format!("{number}.{group:x}");
            let members =
                [("prefix", json!("osd pg-upmap")), ("pgid", json!(id)), ("id", json!(daemons))];
            members.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
        };
        (0..self.groups).map(place).collect()
    }
}
