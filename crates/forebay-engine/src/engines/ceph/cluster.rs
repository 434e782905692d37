//! The plan of a cluster: its configuration, keys and processes. Pure.
//! Assumes that the session refused nodes without Ceph, and that `forebay run` is on the first node.

mod configuration;
mod losses;
mod namespace;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use forebay_ceph::{Action, Actions, Connection, DATA_POOL, Key, Programs, Step as CephStep};
use serde_json::{Map, Value, json};

use super::Ceph;
use super::MountClient;
use super::placement::{NAMES, NamedLayout, local_pool, placement_s_more, pools};
use crate::engine::{EngineRequest, HANG_S_MAX};
use crate::host_facts::{CephFacts, HostFacts};
use crate::steps::{
    DataLocation, EnginePlan, EngineStep, Fence, PlannedFile, Ready, Role, ServerGroup, Stop,
};

/// The name of the file system.
const FILE_SYSTEM: &str = "job";
/// The directory of the allocation in the file system, which the nodes mount.
const ALLOCATION: &str = "/allocation";
/// From so many nodes on, three monitors survive the loss of one.
const MONITORS_OF: usize = 3;
/// The largest file of a new file system, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 40;
/// The time for the monitors to hear that a storage daemon does not answer, in seconds.
const LOSS_S_MAX: u32 = 3;
/// The time for a daemon or a command, in seconds.
const READY_S_MAX: u32 = 60;
/// How long the addresses of a lost node stay on the block list: longer than any job. Ceph's own hour is not.
const BLOCKED_S: f64 = 1e8;
/// The time for the fence of a mount, in seconds. A mount that does not answer is ended, fenced and started again in
/// less than 150 s.
const FENCE_S_MAX: u32 = 15;

/// A cluster to plan.
pub(super) struct Cluster<'a> {
    request: &'a EngineRequest,
    nodes: &'a [HostFacts],
    client: MountClient,
    engine: &'a Ceph,
    /// Steps of the plan so far.
    steps: Vec<EngineStep>,
}

impl<'a> Cluster<'a> {
    pub(super) fn new(
        request: &'a EngineRequest,
        nodes: &'a [HostFacts],
        client: MountClient,
        engine: &'a Ceph,
    ) -> Self {
        Self { request, nodes, client, engine, steps: Vec::new() }
    }

    /// Whether files can be stored on the node that creates them: Forebay's client alone places them.
    fn has_local(&self) -> bool {
        self.client == MountClient::ForebayMount && self.engine.has_local()
    }

    /// Makes and starts a new cluster.
    pub(super) fn plan(mut self) -> EnginePlan {
        self.add_configuration();
        self.add_monitors(true);
        self.add_file_system();
        self.add_storage(true);
        self.add_metadata_servers(&[]);
        self.add_namespace(true);
        self.add_mounts();
        self.finish()
    }

    /// Starts a cluster whose data are on disk.
    pub(super) fn restart(mut self) -> EnginePlan {
        self.add_monitors(false);
        self.add_restart();
        self.add_storage(false);
        // Nobody waits for the mounts of before.
        self.add_metadata_servers(&["--mds-wipe-sessions=true"]);
        self.add_namespace(false);
        self.add_mounts();
        self.finish()
    }

    fn finish(self) -> EnginePlan {
        EnginePlan {
            servers: self.servers(),
            fences: self.fences(),
            losses: self.losses(),
            announce_loss: self.announce_loss(),
            steps: self.steps,
            mount: self.request.mount(),
            environment: BTreeMap::new(),
        }
    }

    /// Which servers may be lost: all but one of the copies, a minority of the monitors, and the metadata server that
    /// another one replaces.
    fn servers(&self) -> Vec<ServerGroup> {
        let group = |name: &str, count: usize, losses_max: usize| ServerGroup {
            servers: (0..count).map(|node| (node, step_id(node, name))).collect(),
            losses_max,
            after_loss: None,
        };
        let (monitors, metadata_servers) = (self.monitors(), self.metadata_servers());
        vec![
            ServerGroup {
                after_loss: self.after_storage_loss(),
                ..group("storage", self.nodes.len(), self.request.redundancy as usize - 1)
            },
            group("monitor", monitors, (monitors - 1) / 2),
            group("metadata", metadata_servers, self.standby_servers()),
        ]
    }

    /// Other nodes wait at least 30 s for what a node without an answer has in use, unless its addresses are on the
    /// block list. `forebay run` and a monitor are on the first node.
    fn fences(&self) -> Vec<Fence> {
        let others = if self.request.redundancy > 1 { 1..self.nodes.len() } else { 0..0 };
        let fence = |node: usize| {
            let mut loss: Action = CephStep::WaitForStorageLoss { daemon: node as u64 }.into();
            loss.s_max = LOSS_S_MAX;
            let name = format!("fence-{}", node + 1);
            let step = self.actions(0, &name, &[], vec![loss, self.block(node)]);
            let address = self.free_address(node);
            Fence { node, address, witness: step_id(node, "storage"), step }
        };
        others.map(fence).collect()
    }

    /// Puts all addresses of a node on the block list.
    fn block(&self, node: usize) -> Action {
        let all = format!("{}:0/0", self.nodes[node].address);
        let add = json!({"prefix": "osd blocklist", "blocklistop": "add", "addr": all, "expire": BLOCKED_S});
        monitor_command(add)
    }

    fn ceph_directory(&self) -> PathBuf {
        self.request.directory.join("ceph")
    }

    fn configuration(&self) -> PathBuf {
        self.ceph_directory().join("ceph.conf")
    }

    /// The file on each node that says which data are lost.
    fn lost_groups(&self) -> PathBuf {
        self.ceph_directory().join("lost-groups.json")
    }

    /// The file on each node with the addresses of its mount.
    fn mount_addresses(&self) -> PathBuf {
        self.ceph_directory().join("mount-addresses.json")
    }

    fn data(&self, node: usize) -> PathBuf {
        self.request.data_directory(&self.nodes[node]).join("ceph")
    }

    fn monitors(&self) -> usize {
        let survives_one = self.request.redundancy > 1 && self.nodes.len() >= MONITORS_OF;
        if survives_one { MONITORS_OF } else { 1 }
    }

    /// Metadata servers that share the names.
    fn active_servers(&self) -> usize {
        self.request.metadata_servers.unwrap_or(1) as usize
    }

    /// Metadata servers that take over.
    fn standby_servers(&self) -> usize {
        usize::from(self.request.redundancy > 1)
    }

    fn metadata_servers(&self) -> usize {
        self.active_servers() + self.standby_servers()
    }

    /// Some bytes of the seed for the daemons, others for the mounts.
    fn key(&self, is_mount: bool) -> Key {
        let [daemons, mounts, _] = self.request.seed;
        let bytes = if is_mount { mounts } else { daemons };
        Key::from_random(bytes, u32::try_from(self.request.unix_s).unwrap_or_default())
    }

    /// A UUID: 0 is the cluster, others are storage daemons.
    fn uuid(&self, number: u16) -> String {
        let mut bytes = self.request.seed[2];
        bytes[4..6].copy_from_slice(&number.to_be_bytes());
        bytes[6] = bytes[6] & 0x0f | 0x40; // random
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
    }

    fn uuid_of_storage(&self, daemon: usize) -> String {
        self.uuid(u16::try_from(daemon + 1).unwrap_or(u16::MAX))
    }

    fn monitor_name(monitor: usize) -> char {
        if monitor == 0 { 'a' } else { char::from(b'a' + (monitor % 26) as u8) }
    }

    /// An address that nothing but a monitor uses.
    fn free_address(&self, node: usize) -> SocketAddr {
        let node = &self.nodes[node];
        SocketAddr::new(node.address, node.free_port)
    }

    fn text_of(address: SocketAddr) -> String {
        format!("[v2:{address}]")
    }

    /// A step with the usual values.
    fn step(&self, node: usize, name: &str, after: &[String]) -> EngineStep {
        let environment = [("CEPH_ARGS", ""), ("CEPH_CONF", "")];
        EngineStep {
            id: step_id(node, name),
            node,
            role: Role::Once,
            directories: Vec::new(),
            files: Vec::new(),
            argv: Vec::new(),
            environment: environment
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            ready: Ready::Ended,
            ready_s_max: READY_S_MAX,
            stop: Stop::Nothing,
            after: after.to_vec(),
            keeps: None,
            fence: None,
        }
    }

    fn programs(&self, node: usize) -> Option<&Programs> {
        match &self.nodes[node].ceph {
            Some(CephFacts::Found(programs)) => Some(programs),
            _ => None, // the session refuses such a node
        }
    }

    /// The words that start a program.
    fn program(&self, node: usize, name: &str) -> Vec<String> {
        let programs = self.programs(node).map(|all| match name {
            "ceph-mon" => &all.monitor,
            "ceph-osd" => &all.storage,
            "ceph-mds" => &all.metadata,
            "ceph-fuse" => &all.mount,
            _ => &all.monitor_map,
        });
        programs.cloned().unwrap_or_else(|| vec![name.to_owned()])
    }

    /// The words that start a program of Ceph with the configuration.
    fn words(&self, node: usize, program: &str, arguments: &[&str]) -> Vec<String> {
        let mut words = self.program(node, program);
        words.extend(arguments.iter().map(|&argument| argument.to_owned()));
        words.extend(["-c".to_owned(), text(&self.configuration())]);
        words
    }

    /// A step of Forebay itself: actions on the cluster.
    fn actions(
        &self,
        node: usize,
        name: &str,
        after: &[String],
        actions: Vec<Action>,
    ) -> EngineStep {
        let file = self.ceph_directory().join(format!("{name}.json"));
        let connection = Connection {
            config: self.configuration(),
            keyring: self.ceph_directory().join("keyring"),
            name: "client.admin".to_owned(),
            library_directory: self.programs(node).and_then(|all| all.library_directory.clone()),
            connect_s_max: READY_S_MAX / 2,
        };
        let text_of_file = json!(Actions { connection, actions }).to_string();
        let mut step = self.step(node, name, after);
        step.argv = vec![text(&self.nodes[node].forebay), "__ceph".to_owned(), text(&file)];
        step.files = vec![PlannedFile { path: file, text: text_of_file }];
        step
    }

    fn add_configuration(&mut self) {
        for node in 0..self.nodes.len() {
            let mut step = self.step(node, "configuration", &[]);
            step.directories = vec![self.ceph_directory(), self.request.mount()];
            step.directories.extend(["osd", "mds"].map(|name| self.data(node).join(name)));
            let file = |name: &str, text: String| PlannedFile {
                path: self.ceph_directory().join(name),
                text,
            };
            step.files = vec![
                file("ceph.conf", self.text_of_configuration(node)),
                file("keyring", self.text_of_keyring(node)),
            ];
            self.steps.push(step);
            self.add_map(node);
        }
    }

    /// The addresses of the monitors, for the daemons that are made before a monitor runs.
    fn add_map(&mut self, node: usize) {
        let mut step = self.step(node, "monitor-map", &[step_id(node, "configuration")]);
        step.argv = self.program(node, "monmaptool");
        let fixed = ["--create", "--clobber", "--fsid", &self.uuid(0)];
        step.argv.extend(fixed.map(str::to_owned));
        for monitor in 0..self.monitors() {
            let name = Self::monitor_name(monitor).to_string();
            let address = Self::text_of(self.free_address(monitor));
            step.argv.extend(["--addv".to_owned(), name, address]);
        }
        step.argv.push(text(&self.ceph_directory().join("monmap")));
        self.steps.push(step);
    }

    fn add_monitors(&mut self, is_new: bool) {
        let map = text(&self.ceph_directory().join("monmap"));
        let keyring = text(&self.ceph_directory().join("keyring"));
        for monitor in 0..self.monitors() {
            let name = Self::monitor_name(monitor).to_string();
            let mut after = Vec::new();
            if is_new {
                let mut make =
                    self.step(monitor, "monitor-make", &[step_id(monitor, "monitor-map")]);
                make.argv = self.words(
                    monitor,
                    "ceph-mon",
                    &["--mkfs", "-i", &name, "--monmap", &map, "--keyring", &keyring],
                );
                after.push(make.id.clone());
                self.steps.push(make);
            }
            let mut serve = self.step(monitor, "monitor", &after);
            serve.argv = self.words(monitor, "ceph-mon", &["-f", "-i", &name]);
            serve.role = Role::Server;
            serve.ready = Ready::Accepts(self.free_address(monitor));
            serve.stop = Stop::Signal;
            self.steps.push(serve);
        }
    }

    fn all_monitors(&self) -> Vec<String> {
        (0..self.monitors()).map(|monitor| step_id(monitor, "monitor")).collect()
    }

    fn add_storage(&mut self, is_new: bool) {
        let map = text(&self.ceph_directory().join("monmap"));
        for node in 0..self.nodes.len() {
            let id = node.to_string();
            let mut after = vec![step_id(0, "file-system")];
            if is_new {
                let mut make = self.step(node, "storage-make", &[step_id(node, "monitor-map")]);
                let uuid = self.uuid_of_storage(node);
                let arguments =
                    ["--no-mon-config", "--mkfs", "-i", &id, "--osd-uuid", &uuid, "--monmap", &map];
                make.argv = self.words(node, "ceph-osd", &arguments);
                after.push(make.id.clone());
                self.steps.push(make);
            }
            let mut serve = self.step(node, "storage", &after);
            serve.argv = self.words(node, "ceph-osd", &["-f", "-i", &id]);
            serve.keeps = Some(match self.nodes[node].store.in_memory {
                true => DataLocation::Memory,
                false => DataLocation::Files(self.data(node).join("osd")),
            });
            serve.role = Role::Server;
            serve.ready = Ready::Started;
            serve.stop = Stop::Signal;
            self.steps.push(serve);
        }
    }

    /// Registers the storage daemons, and makes pools and file system. All daemons
    /// have their place and all groups theirs before a daemon runs: a group that moves between running daemons
    /// sometimes never answers again ("waiting for readable", Ceph 16.2.15).
    fn add_file_system(&mut self) {
        let daemons = || 0..self.nodes.len();
        // "osd new" chooses the number itself, so that each would have to wait for the one before.
        let new = |daemon: usize| {
            let uuid = self.uuid_of_storage(daemon);
            members(json!({"prefix": "osd create", "uuid": uuid, "id": daemon}))
        };
        let place = |daemon: usize| {
            let bucket = ["root=default".to_owned(), format!("host=node-{daemon}")];
            members(json!({"prefix": "osd crush add", "id": daemon, "weight": 1.0, "args": bucket}))
        };
        let ids: Vec<_> = daemons().map(|daemon| daemon.to_string()).collect();
        let at_once = |commands| Action::from(CephStep::MonitorAtOnce(commands));
        let mut actions = vec![at_once(daemons().map(new).collect())];
        actions.push(at_once(daemons().map(place).collect()));
        actions.push(monitor_command(json!({"prefix": "osd in", "ids": ids.clone()})));
        let copies = self.request.redundancy as usize;
        let pools = pools(ids.len(), self.has_local(), copies);
        actions.extend(pools.iter().map(|pool| monitor_command(pool.create())));
        let numbered = (1..).zip(&pools);
        let placement =
            numbered.flat_map(|(number, pool)| pool.placement(number, ids.len(), copies));
        let mut places = at_once(placement.collect());
        let more_s_max = placement_s_more(ids.len());
        places.s_max += more_s_max;
        actions.push(places);
        let set = |variable: &str, value: String| json!({"prefix": "fs set", "fs_name": FILE_SYSTEM, "var": variable, "val": value});
        let file_system = [
            json!({"prefix": "fs new", "fs_name": FILE_SYSTEM, "metadata": NAMES, "data": DATA_POOL}),
            set("session_timeout", silence_s_max(self.client).to_string()),
        ];
        let servers = self.active_servers();
        let servers = (servers > 1).then(|| set("max_mds", servers.to_string()));
        let file_size = (self.request.capacity_bytes > FILE_BYTES_MAX)
            .then(|| set("max_file_size", self.request.capacity_bytes.to_string()));
        let more = pools.iter().skip(2).map(
            |pool| json!({"prefix": "fs add_data_pool", "fs_name": FILE_SYSTEM, "pool": pool.name}),
        );
        let file_system = file_system.into_iter().chain(servers).chain(file_size).chain(more);
        actions.extend(file_system.map(monitor_command));
        let mut step = self.actions(0, "file-system", &self.all_monitors(), actions);
        step.ready_s_max += more_s_max;
        self.steps.push(step);
    }

    /// Tells the monitors that the daemons of before are gone.
    fn add_restart(&mut self) {
        let ids: Vec<_> = (0..self.nodes.len()).map(|daemon| daemon.to_string()).collect();
        let mut actions = vec![monitor_command(json!({"prefix": "osd down", "ids": ids}))];
        actions.push(self.short_lease());
        for server in 0..self.metadata_servers() {
            let name = Self::monitor_name(server).to_string();
            let mut fail = monitor_command(json!({"prefix": "mds fail", "role_or_gid": name}));
            fail.accept = vec!["ENOENT".to_owned(), "EINVAL".to_owned()];
            actions.push(fail);
        }
        let step = self.actions(0, "file-system", &self.all_monitors(), actions);
        self.steps.push(step);
    }

    /// With copies they start when all storage daemons are up. What they wrote before would have one copy for some
    /// seconds, and a node that is lost then would take it along: the file system would hang for ever.
    fn add_metadata_servers(&mut self, more: &[&str]) {
        let mut before = self.all_monitors();
        if self.request.redundancy > 1 {
            let storage = (0..self.nodes.len()).map(|node| step_id(node, "storage"));
            let wait = CephStep::WaitForStorage { daemons: self.nodes.len() as u64 };
            let step =
                self.actions(0, "storage-up", &storage.collect::<Vec<_>>(), vec![wait.into()]);
            before.push(step.id.clone());
            self.steps.push(step);
        }
        for node in 0..self.metadata_servers() {
            let name = Self::monitor_name(node).to_string();
            let mut after = before.clone();
            let made = step_id(node, "configuration");
            after.extend(self.has(&made).then_some(made));
            let mut serve = self.step(node, "metadata", &after);
            serve.argv = self.words(node, "ceph-mds", &[&["-f", "-i", &name], more].concat());
            serve.role = Role::Server;
            serve.ready = Ready::Started;
            serve.stop = Stop::Signal;
            self.steps.push(serve);
        }
    }

    fn has(&self, id: &str) -> bool {
        self.steps.iter().any(|step| step.id == id)
    }

    fn add_mounts(&mut self) {
        let after = [step_id(0, "namespace")];
        for node in 0..self.nodes.len() {
            let mut step = self.step(node, "mount", &after);
            step.directories = vec![self.request.mount()];
            step.argv = self.words_of_mount(node);
            if let Some(library) = self.preload(node) {
                step.environment.insert("LD_PRELOAD".to_owned(), text(library));
            }
            if self.client == MountClient::ForebayMount {
                let block = CephStep::BlockMount { addresses: self.mount_addresses() };
                let mut fence = self.actions(node, "mount-fence", &[], vec![block.into()]);
                fence.ready_s_max = FENCE_S_MAX;
                step.fence = Some(Box::new(fence));
            }
            step.role = Role::Mount;
            step.ready = Ready::Mounted(self.request.mount());
            step.stop = Stop::Unmount(self.request.mount());
            self.steps.push(step);
        }
    }

    /// The library that lets the mount of a node go on when it was not woken; without it the mount has no cache.
    fn preload(&self, node: usize) -> Option<&PathBuf> {
        let node = &self.nodes[node];
        let is_of_use = self.client == MountClient::ForebayMount || node.ceph_fuse_shows_waits;
        node.ceph_preload.as_ref().filter(|_| is_of_use)
    }

    /// The words that start the mount of a node.
    fn words_of_mount(&self, node: usize) -> Vec<String> {
        let mount = text(&self.request.mount());
        if self.client == MountClient::CephFuse {
            let options = ["-f", "--id", "job", "--client_mountpoint", ALLOCATION, &mount];
            return self.words(node, "ceph-fuse", &options);
        }
        let mut words = vec![text(&self.nodes[node].forebay), "__mount".to_owned()];
        let keyring = text(&self.ceph_directory().join("keyring"));
        let (config, lost_groups) = (text(&self.configuration()), text(&self.lost_groups()));
        let addresses = text(&self.mount_addresses());
        let options = [
            ("--config", config.as_str()),
            ("--keyring", &keyring),
            ("--name", "client.job"),
            ("--root", ALLOCATION),
            ("--lost-groups", &lost_groups),
            ("--addresses", &addresses),
        ];
        for (option, value) in options {
            words.extend([option.to_owned(), value.to_owned()]);
        }
        let libraries = self.programs(node).and_then(|all| all.library_directory.as_ref());
        if let Some(directory) = libraries {
            words.extend(["--libraries".to_owned(), text(directory)]);
        }
        for NamedLayout { named, pattern, stripe_unit_bytes, placement } in &self.engine.layouts {
            let bytes = stripe_unit_bytes.unwrap_or(self.request.layout.stripe_unit_bytes);
            let layout = format!("{}:{placement}:{bytes}:{pattern}", named.key());
            words.extend(["--layout".to_owned(), layout]);
        }
        if self.has_local() {
            words.extend(["--local-pool".to_owned(), local_pool(node)]);
        }
        words.push(mount);
        words
    }
}

/// How long a mount may be silent before other nodes may write what it has cached: longer than one may hang. A mount of
/// `ceph-fuse` that died is not fenced, and other nodes wait so long for it; 30 is the least.
fn silence_s_max(client: MountClient) -> u32 {
    match client {
        MountClient::ForebayMount => 2 * HANG_S_MAX,
        MountClient::CephFuse => 30,
    }
}

fn step_id(node: usize, name: &str) -> String {
    format!("n{}.{name}", node + 1)
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn members(command: Value) -> Map<String, Value> {
    match command {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn monitor_command(command: Value) -> Action {
    CephStep::Monitor(members(command)).into()
}
