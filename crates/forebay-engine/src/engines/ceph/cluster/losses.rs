//! How the nodes go on when a storage daemon ended.
//!
//! Without copies, what it had in memory is given up. Not offered for the first node, which has the names and the
//! monitor, and for nodes with a metadata server that nobody replaces.
//!
//! With copies, no other daemon may be lost, so none waits for the end of another's lease any more: it gets longer.
//! Ceph may keep requests for ever that meet an expired lease of a daemon that is alone in its groups.

use forebay_ceph::{Action, Step as CephStep};
use serde_json::json;

use super::super::MountClient;
use super::super::settings::LEASE_RATIO_ALONE;
use super::{Cluster, FILE_SYSTEM, monitor_command, step_id};
use crate::steps::{EngineStep, Loss};

/// Placement groups of a pool for the files after a loss: many losses must not exceed Ceph's limit for a daemon.
const GROUPS: usize = 32;
/// The time that storage daemons need for new groups on a busy machine.
const GROUPS_S_MAX: u32 = 8;

/// The setting of the lease: a multiple of the grace of heartbeats.
const LEASE_RATIO: &str = "osd_pool_default_read_lease_ratio";

impl Cluster<'_> {
    /// With copies, a longer lease for the daemons that are left.
    pub(super) fn after_storage_loss(&self) -> Option<EngineStep> {
        let set = json!({"prefix": "config set", "who": "osd", "name": LEASE_RATIO, "value": LEASE_RATIO_ALONE});
        // Daemons look at the setting when they get a new map. Nothing reads so much that an error would be found.
        let new_map = json!({"prefix": "osd set", "key": "noscrub"});
        let actions = || vec![monitor_command(set), monitor_command(new_map)];
        (self.request.redundancy > 1).then(|| self.actions(0, "long-lease", &[], actions()))
    }

    /// The lease of daemons that have all copies.
    pub(super) fn short_lease(&self) -> Action {
        monitor_command(json!({"prefix": "config rm", "who": "osd", "name": LEASE_RATIO}))
    }

    pub(super) fn losses(&self) -> Vec<Loss> {
        let is_offered = self.request.redundancy == 1 && self.client == MountClient::ForebayMount;
        let nodes = if is_offered { self.active_servers()..self.nodes.len() } else { 0..0 };
        let in_memory = nodes.filter(|node| self.nodes[*node].store.in_memory);
        in_memory.map(|node| self.loss(node)).collect()
    }

    fn loss(&self, node: usize) -> Loss {
        let daemon = node as u64;
        let pool = format!("data.without.{}", node + 1);
        let on_first = |name: &str, actions| {
            self.actions(0, &format!("loss-{}-{name}", node + 1), &[], actions)
        };
        let ids = [daemon.to_string()];
        let prepare = vec![
            CephStep::NoteLostGroups {
                daemon,
                daemons: self.nodes.len() as u64,
                new_pool: pool.clone(),
            }
            .into(),
            // A request that reaches another daemon before the group is there never gets an answer.
            monitor_command(json!({"prefix": "osd set", "key": "pause"})),
            monitor_command(json!({"prefix": "osd down", "ids": ids})),
            monitor_command(
                json!({"prefix": "osd pool create", "pool": pool, "pg_num": GROUPS, "pgp_num": GROUPS}),
            ),
            monitor_command(
                json!({"prefix": "fs add_data_pool", "fs_name": FILE_SYSTEM, "pool": pool}),
            ),
        ];
        let finish = vec![
            monitor_command(
                json!({"prefix": "osd lost", "id": daemon, "yes_i_really_mean_it": true}),
            ),
            CephStep::ReplaceLostGroups.into(),
            // Ceph 16.2.15 sometimes never makes groups that are ordered when they have another daemon already.
            monitor_command(json!({"prefix": "osd out", "ids": ids})),
            CephStep::WaitForGroups { s_max: GROUPS_S_MAX }.into(),
            monitor_command(json!({"prefix": "osd unset", "key": "pause"})),
        ];
        Loss {
            node,
            server: step_id(node, "storage"),
            fence: on_first("fence", vec![self.block(node)]),
            prepare: on_first("prepare", prepare),
            finish: on_first("finish", finish),
        }
    }

    /// Tells the mount of each node what was lost last.
    pub(super) fn announce_loss(&self) -> Vec<EngineStep> {
        let tell = |at: usize| {
            let (mount, file) = (self.request.mount(), self.lost_groups());
            let action = CephStep::TellMount { mount, file };
            self.actions(at, "tell-loss", &[], vec![action.into()])
        };
        (0..self.nodes.len()).map(tell).collect()
    }
}
