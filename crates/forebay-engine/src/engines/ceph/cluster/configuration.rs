//! The files of a cluster: its configuration and its keys.
//! Assumes that all nodes serve one user: daemons and `client.admin` share one secret, which each node has.
//! The key of the mounts never allows to change the capacity.

use super::super::settings;
use super::{ALLOCATION, Cluster, FILE_SYSTEM};
use crate::engine::PROBES;

/// What a storage daemon may use beyond its share: objects are not distributed evenly.
const DEVICE_PERCENT: u64 = 125;
const DEVICE_EXTRA_BYTES: u64 = 512 << 20;

impl Cluster<'_> {
    pub(super) fn text_of_configuration(&self, node: usize) -> String {
        let monitors = (0..self.monitors()).map(|one| Self::text_of(self.free_address(one)));
        let names: Vec<_> =
            (0..self.monitors()).map(|one| Self::monitor_name(one).to_string()).collect();
        let (home, data) = (self.ceph_directory(), self.data(node));
        let address = self.nodes[node].address;
        let store = if self.nodes[node].store.in_memory { "memstore" } else { "bluestore" };
        let device_bytes = self.device_bytes(node);
        let copies = self.request.redundancy;
        format!(
            "[global]\n\
             fsid = {fsid}\n\
             mon host = {hosts}\n\
             mon initial members = {names}\n\
             public addr = {address}\n\
             cluster addr = {address}\n\
             keyring = {home}/keyring\n\
             crash dir = {home}\n\
             run dir = {home}\n\
             mon data = {data}/mon\n\
             osd data = {data}/osd\n\
             mds data = {data}/mds\n\
             osd objectstore = {store}\n\
             memstore device bytes = {device_bytes}\n\
             bluestore block size = {device_bytes}\n\
             osd pool default size = {copies}\n\
             client fs = {FILE_SYSTEM}\n\
             {plugins}{settings}",
            fsid = self.uuid(0),
            hosts = monitors.collect::<Vec<_>>().join(","),
            names = names.join(","),
            home = home.display(),
            data = data.display(),
            plugins = self.programs(node).map(|all| lines(&all.config_lines)).unwrap_or_default(),
            settings = settings::lines(copies > 1, self.preload(node).is_some()),
        )
    }

    /// What the storage daemon of a node can take. With files that stay on their node, one node may have all of them.
    fn device_bytes(&self, node: usize) -> u64 {
        let share_bytes = self.request.share_bytes(self.nodes.len());
        // One copy of all names is on the first node.
        let has_names = self.request.redundancy == 1 && node == 0;
        let extra = if has_names { self.nodes.len() as u64 } else { 1 };
        let extra_bytes = DEVICE_EXTRA_BYTES.saturating_mul(extra);
        let bytes = |data_bytes: u64| data_bytes / 100 * DEVICE_PERCENT + extra_bytes;
        if !self.has_local() {
            return bytes(share_bytes);
        }
        let of_one_bytes = self.request.share_bytes(1).min(self.nodes[node].store.usable_bytes);
        bytes(share_bytes.max(of_one_bytes))
    }

    /// A node with a monitor knows the keys of all daemons, another one those of its own.
    pub(super) fn text_of_keyring(&self, node: usize) -> String {
        let has_monitor = node < self.monitors();
        let all = "allow *";
        let key = self.key(false);
        let mut text = key.keyring("mon.", &[("mon", all)]);
        let everything = [("mon", all), ("osd", all), ("mds", all), ("mgr", all)];
        text += &key.keyring("client.admin", &everything);
        let of_storage = [("mon", "allow profile osd"), ("osd", all)];
        for daemon in (0..self.nodes.len()).filter(|daemon| has_monitor || *daemon == node) {
            text += &key.keyring(&format!("osd.{daemon}"), &of_storage);
        }
        let of_metadata = [("mon", "allow profile mds"), ("osd", all), ("mds", all)];
        for server in 0..self.metadata_servers() {
            text += &key.keyring(&format!("mds.{}", Self::monitor_name(server)), &of_metadata);
        }
        let names_of_mount = self.rights_of_mount();
        let of_mount = [
            ("mon", "allow r"),
            ("osd", "allow rw tag cephfs data=job"),
            ("mds", names_of_mount.as_str()),
        ];
        text + &self.key(true).keyring("client.job", &of_mount)
    }

    /// Mounts may set layouts (p) in the namespaces and of probes, but not the capacity, which is that of the directory
    /// above.
    fn rights_of_mount(&self) -> String {
        let namespaces = self.request.namespaces.iter().map(String::as_str);
        let of_namespace =
            namespaces.chain([PROBES]).map(|name| format!(", allow rwp path={ALLOCATION}/{name}"));
        format!("allow rw path={ALLOCATION}{}", of_namespace.collect::<String>())
    }
}

fn lines(all: &[String]) -> String {
    all.iter().map(|line| format!("{line}\n")).collect()
}
