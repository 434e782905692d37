//! The directory of the allocation, which the nodes mount: its owner, layout and capacity.

use forebay_ceph::{Action, DATA_POOL, LOCAL_POOL, Step as CephStep};

use super::{ALLOCATION, Cluster, FILE_SYSTEM, step_id};
use crate::engine::{LocalFiles, SERVERS_ATTRIBUTE};

/// The attribute of a directory that says how its new files are distributed.
const LAYOUT: &str = "ceph.dir.layout";
/// The attribute of a directory whose directories are spread over the metadata servers.
const SPREAD: &str = "ceph.dir.pin.distributed";
impl Cluster<'_> {
    /// Waits for the servers; then the directory that nodes mount, with owner, layout and capacity.
    pub(super) fn add_namespace(&mut self, is_new: bool) {
        let mut actions: Vec<Action> = vec![
            CephStep::WaitForStorage { daemons: self.nodes.len() as u64 }.into(),
            CephStep::WaitForMetadataServers {
                file_system: FILE_SYSTEM.to_owned(),
                active: self.active_servers(),
                standby: self.standby_servers(),
            }
            .into(),
        ];
        if is_new {
            actions.extend(self.allocation());
        }
        let step = self.actions(0, "namespace", &[step_id(0, "file-system")], actions);
        self.steps.push(step);
    }

    fn allocation(&self) -> Vec<Action> {
        let (uid, gid) = self.request.owner;
        // Each unit is an object of its own, so a file is spread over all storage daemons. With a stripe count
        // above 1 the metadata server finds a wrong size for a file whose writer died: up to a stripe too much,
        // or too little.
        let unit_bytes = self.request.layout.stripe_unit_bytes;
        let make = |path: &str, mode: u32| {
            Action::from(CephStep::MakeDirectory { path: path.to_owned(), mode, uid, gid })
        };
        let set_of = |path: &str, name: &str, value: String| {
            let (path, name) = (path.to_owned(), name.to_owned());
            Action::from(CephStep::SetAttribute { path, name, value })
        };
        let set = |name: &str, value: String| set_of(ALLOCATION, name, value);
        let layout = |pool: &str| {
            format!("stripe_unit={unit_bytes} stripe_count=1 object_size={unit_bytes} pool={pool}")
        };
        let mut actions = vec![
            make(ALLOCATION, 0o700),
            set(LAYOUT, layout(DATA_POOL)),
            set("ceph.quota.max_bytes", self.request.capacity_bytes.to_string()),
            set(SERVERS_ATTRIBUTE, self.nodes.len().to_string()),
        ];
        // Not of the whole allocation: the probes of a node have to reach all servers.
        let local =
            (self.engine.local_files == LocalFiles::All).then(|| (LAYOUT, layout(LOCAL_POOL)));
        let spread = (self.active_servers() > 1).then(|| (SPREAD, "1".to_owned()));
        let attributes: Vec<_> = local.into_iter().chain(spread).collect();
        if !attributes.is_empty() {
            for name in &self.request.namespaces {
                let path = format!("{ALLOCATION}/{name}");
                actions.push(make(&path, 0o755));
                let each = attributes.iter();
                actions.extend(each.map(|(name, value)| set_of(&path, name, value.clone())));
            }
        }
        actions
    }
}
