//! Gives a job one namespace over its nodes: connects them, checks what they offer, carries out the plan
//! of an engine, watches it, and takes it down. Never copies data.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use forebay_engine::Error::LessThanAsked;
use forebay_engine::{
    CapacityCommand, Coherence, Engine, EnginePlan, EngineRequest, FactsRequest, HostFacts, Layout,
    NodesSummary, NodesUse, PRIVATE, PROBES, Promise, StoreUsed,
};
use forebay_host::messages::Messages;
use forebay_host::{clock, files, system, users};
use indicatif::HumanBytes;

use crate::agent::protocol::{Answer, Claim, Request};
use crate::error::Error;
use crate::leftovers::{described, remount, stop};
use crate::monitor::Findings;
use crate::nodes::{AgentSpec, CONNECT_MAX, NodeHandle, Nodes};
use crate::recovery::{Recovery, WatchPlan};
use crate::runner;
use crate::watch::Watch;

/// The time for a node to look at itself.
const FACTS_MAX: Duration = Duration::from_secs(60);
/// The time for a node to make directories.
pub(crate) const CLAIM_MAX: Duration = Duration::from_secs(30);
/// Clocks that differ by more are reported, in milliseconds.
const CLOCK_DIFFERENCE_MS_MAX: u64 = 30_000;
/// Data are not distributed evenly: a store has room for so many percent of its share.
const SHARE_PERCENT: u64 = 125;

/// What a job needs from its nodes.
pub struct SessionSpec<'a> {
    /// Id of the job.
    pub id: &'a str,
    /// The engine.
    pub engine: &'a dyn Engine,
    /// The directory of an engine that is carried along, on each node; none: that of the system.
    pub engine_root: Option<&'a Path>,
    /// The store of the user or the site; none: the default.
    pub store: Option<&'a Path>,
    /// The requested capacity; none: what the stores grant.
    pub capacity_bytes: Option<u64>,
    /// Refuse to start with less.
    pub strict_capacity: bool,
    /// Copies of the data.
    pub redundancy: u32,
    /// Metadata servers that share the names; none: as many as the engine has.
    pub metadata_servers: Option<u32>,
    /// How files are distributed.
    pub layout: Layout,
    /// The least coherence that the job accepts.
    pub coherence: Coherence,
    /// The directories of the namespaces over all nodes.
    pub namespaces: Vec<String>,
    /// Whether each node has a private namespace.
    pub private: bool,
    /// A second path of the private namespace.
    pub node_local: Option<PathBuf>,
    /// How long a mount may not answer, and a node not be reached, in seconds.
    pub hang_s_max: u32,
    /// Receives messages.
    pub messages: &'a dyn Messages,
}

impl SessionSpec<'_> {
    /// The engine limits the namespace over the nodes. Private namespaces have no limit.
    fn enforces_capacity(&self) -> bool {
        !self.namespaces.is_empty() && self.engine.enforces_capacity()
    }
}

/// A namespace over all nodes of a job.
pub struct Session {
    watch: Watch,
    mount: PathBuf,
    environment: BTreeMap<String, String>,
    used: StoreUsed,
    promise: Promise,
    choices: Vec<String>,
    has_namespace: bool,
    nodes_use: NodesUse,
}

/// What was settled before anything is started.
struct SessionPlan {
    request: EngineRequest,
    facts: Vec<HostFacts>,
    used: StoreUsed,
}

impl Session {
    /// Starts the engine. `record` is called before the first directory is made, and what it records is
    /// enough to remove everything.
    ///
    /// # Errors
    /// Names the node and the reason. What was started is then stopped and removed, or named as left.
    pub fn start(
        spec: &SessionSpec,
        agents: AgentSpec,
        record: &mut dyn FnMut(&NodesUse) -> forebay_host::Result<()>,
        should_continue: &dyn Fn() -> bool,
    ) -> Result<Self, Error> {
        check_names(&agents.names)?;
        let nodes = Nodes::connect(agents, CONNECT_MAX, should_continue)?;
        let session = Self::start_connected(spec, &nodes, record, should_continue);
        if let Err(error) = &session {
            nodes.close(matches!(error, Error::EngineInterrupted | Error::EngineLeft { .. }));
        }
        session
    }

    /// The store and the size that the nodes would give. Starts nothing on them but agents, which end.
    ///
    /// # Errors
    /// Names the node and the reason.
    pub fn preview(
        spec: &SessionSpec,
        agents: AgentSpec,
        should_continue: &dyn Fn() -> bool,
    ) -> Result<StoreUsed, Error> {
        check_names(&agents.names)?;
        let nodes = Nodes::connect(agents, CONNECT_MAX, should_continue)?;
        let planned = plan_session(spec, &nodes, should_continue).and_then(|settled| {
            plan_of(spec, &settled)?; // what the engine cannot keep is refused
            Ok(settled.used)
        });
        nodes.close(planned.is_err());
        planned
    }

    fn start_connected(
        spec: &SessionSpec,
        nodes: &Arc<Nodes>,
        record: &mut dyn FnMut(&NodesUse) -> forebay_host::Result<()>,
        should_continue: &dyn Fn() -> bool,
    ) -> Result<Self, Error> {
        let settled = plan_session(spec, nodes, should_continue)?;
        let plan = plan_of(spec, &settled)?;
        let nodes_use = nodes_use(spec, nodes, &settled);
        record(&nodes_use)?;
        let promise = spec.engine.promise(spec.redundancy, settled.used.in_memory, &settled.facts);
        let choices = spec.engine.choices(&settled.facts);
        let watch = WatchPlan {
            engine: spec.engine.name().to_owned(),
            promise: promise.clone(),
            servers: plan.servers.clone(),
            fences: plan.fences.clone(),
            losses: plan.losses.clone(),
            announce_loss: plan.announce_loss.clone(),
            probes: probes(spec, &plan.mount, nodes.len()),
        };
        let started = claim(spec, nodes, &settled)
            .and_then(|()| write_recovery(spec, &settled, &watch, &nodes_use))
            .and_then(|()| runner::carry_out(&plan, nodes, should_continue))
            .and_then(|()| prepare_namespace(&plan.mount, spec, nodes));
        if let Err(error) = started {
            let left = stop(nodes, &nodes_use, true);
            return Err(match left.is_empty() {
                true => error,
                false => Error::EngineLeft { error: Box::new(error), left },
            });
        }
        let limits = (&nodes_use, spec.hang_s_max);
        Ok(Self {
            watch: Watch::start(nodes, watch, limits, Findings::default())?,
            mount: plan.mount,
            environment: plan.environment,
            used: settled.used,
            promise,
            choices,
            has_namespace: !spec.namespaces.is_empty(),
            nodes_use,
        })
    }

    /// The directory that shows the namespace, on each node.
    pub fn mount(&self) -> &Path {
        &self.mount
    }

    /// The nodes but this one.
    pub fn others(&self) -> Vec<NodeHandle> {
        let nodes = self.watch.nodes();
        (1..nodes.len()).map(|node| NodeHandle::new(nodes, node)).collect()
    }

    /// Variables for the job's processes.
    pub fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }

    /// The store and the size.
    pub fn store_used(&self) -> &StoreUsed {
        &self.used
    }

    /// What the engine guarantees.
    pub fn promise(&self) -> &Promise {
        &self.promise
    }

    /// What was chosen where the engine has a choice.
    pub fn choices(&self) -> &[String] {
        &self.choices
    }

    /// The nodes, and whether they failed.
    pub fn summary(&self) -> NodesSummary {
        NodesSummary {
            failed: self.failure(),
            data_lost: self.watch.are_data_lost(),
            ..self.nodes_use.summary()
        }
    }

    /// The processes here that lead to the agents. They are not processes of the job.
    pub fn launchers(&self) -> Vec<i32> {
        self.watch.nodes().launchers()
    }

    /// Messages of the monitor since the last call.
    pub fn take_messages(&self) -> Vec<String> {
        self.watch.take_messages()
    }

    /// Why operations on the namespace fail; none while they succeed.
    pub fn failure(&self) -> Option<String> {
        self.watch.failure()
    }

    /// Mounts the namespace again on nodes whose mount ended, for the stage-out. The job's processes have
    /// ended. Messages about these nodes.
    pub fn remount(&self) -> Vec<String> {
        let has_namespace = self.has_namespace && self.failure().is_none();
        if has_namespace { remount(self.watch.nodes(), &self.mount) } else { Vec::new() }
    }

    /// What watches the nodes, for a process that has no other use for the namespace.
    pub fn into_watch(self) -> Watch {
        self.watch
    }

    /// Leaves the engine running, without agents: a later `forebay clean` continues.
    pub fn leave(mut self) -> Vec<String> {
        self.watch.end();
        let nodes = self.watch.nodes();
        let left = nodes.all(&Request::Leave, CLAIM_MAX);
        let left: Vec<_> = left.into_iter().filter_map(Result::err).map(described).collect();
        nodes.close(!left.is_empty());
        left
    }

    /// Stops the engine and removes its data; returns the leftovers, with the node.
    pub fn remove(mut self) -> Vec<String> {
        self.watch.end();
        let nodes = self.watch.nodes();
        let left = stop(nodes, &self.nodes_use, true);
        nodes.close(!left.is_empty());
        left
    }
}

fn check_names(names: &[String]) -> Result<(), Error> {
    let mut seen = HashMap::new();
    for name in names {
        if seen.insert(name, ()).is_some() {
            return Err(Error::NodeTwice(name.clone(), name.clone()));
        }
    }
    Ok(())
}

/// Asks the nodes what they have, and settles the size.
fn plan_session(
    spec: &SessionSpec,
    nodes: &Arc<Nodes>,
    should_continue: &dyn Fn() -> bool,
) -> Result<SessionPlan, Error> {
    let promise = spec.engine.promise(spec.redundancy, true, &[]);
    if promise.coherence < spec.coherence {
        return Err(Error::Coherence {
            engine: spec.engine.name().to_owned(),
            promised: promise.coherence,
            asked: spec.coherence,
        });
    }
    let facts = facts_of(spec, nodes, should_continue)?;
    check_facts(spec, &facts)?;
    for choice in spec.engine.choices(&facts) {
        spec.messages.explain(&format!("engine {}: {choice}", spec.engine.name()));
    }
    let used = size(spec, &facts)?;
    Ok(SessionPlan {
        request: EngineRequest {
            id: spec.id.to_owned(),
            directory: nodes.agents().directory.clone(),
            capacity_bytes: used.capacity_bytes,
            redundancy: spec.redundancy,
            metadata_servers: spec.metadata_servers,
            layout: spec.layout,
            user: users::user_name(),
            namespaces: spec.namespaces.clone(),
            owner: (users::user_id(), users::own_group_id()),
            seed: [system::random_bytes()?, system::random_bytes()?, system::random_bytes()?],
            unix_s: clock::unix_s(),
        },
        facts,
        used,
    })
}

fn facts_of(
    spec: &SessionSpec,
    nodes: &Arc<Nodes>,
    should_continue: &dyn Fn() -> bool,
) -> Result<Vec<HostFacts>, Error> {
    let names = &nodes.agents().names;
    let user = users::user_name();
    let all: Vec<_> = names.iter().map(String::as_str).collect();
    let request = |(node, name): (usize, &String)| {
        let asked = CapacityCommand { id: spec.id, user: &user, names: &all, node };
        let capacity = spec.engine.capacity(&asked).map_err(|message| Error::EngineRefuses {
            engine: spec.engine.name().to_owned(),
            message,
        })?;
        let peer = names.iter().find(|other| *other != name);
        let request = FactsRequest {
            name: name.clone(),
            peer: peer.cloned(),
            programs: spec.engine.programs().into_iter().map(str::to_owned).collect(),
            ceph: spec.engine.looks_for_ceph(),
            engine_root: spec.engine_root.map(Path::to_owned),
            store: spec.store.map(Path::to_owned),
            capacity,
        };
        Ok((node, Request::Facts(request)))
    };
    let requests = names.iter().enumerate().map(request).collect::<Result<_, Error>>()?;
    let answers = nodes.ask(requests, FACTS_MAX, should_continue);
    let named = |(node, answer)| {
        let failed = |message| Error::Node { node: nodes.name(node).to_owned(), message };
        match answer {
            Ok(Answer::Facts(facts)) => Ok(*facts),
            Ok(Answer::Failed { message, .. }) | Err(message) => Err(failed(message)),
            Ok(_) => Err(failed(crate::nodes::UNEXPECTED.to_owned())),
        }
    };
    answers.into_iter().enumerate().map(named).collect()
}

fn check_facts(spec: &SessionSpec, facts: &[HostFacts]) -> Result<(), Error> {
    let mut machines: HashMap<&str, &str> = HashMap::new();
    for node in facts {
        if let Some(other) = machines.insert(&node.identity, &node.name) {
            return Err(Error::NodeTwice(other.to_owned(), node.name.clone()));
        }
        let missing = spec.engine.missing(node);
        if !missing.is_empty() {
            return Err(Error::EngineMissing {
                engine: spec.engine.name().to_owned(),
                node: node.name.clone(),
                missing,
            });
        }
    }
    let clocks = facts.iter().map(|node| node.unix_ms);
    let (first, last) = (clocks.clone().min(), clocks.max());
    let difference_ms = last.unwrap_or_default() - first.unwrap_or_default();
    if difference_ms > CLOCK_DIFFERENCE_MS_MAX {
        let slow = facts.iter().min_by_key(|node| node.unix_ms).map_or("", |node| &node.name);
        let fast = facts.iter().max_by_key(|node| node.unix_ms).map_or("", |node| &node.name);
        spec.messages.warning(&format!(
            "the clocks of {slow} and {fast} differ by {} s: times of files differ between nodes",
            difference_ms / 1000
        ));
    }
    Ok(())
}

/// The size of the namespace. The smallest store limits it.
fn size(spec: &SessionSpec, facts: &[HostFacts]) -> Result<StoreUsed, Error> {
    if let Some(usable_bytes) = facts.iter().filter_map(|node| node.engine_bytes).min() {
        return size_of_engine(spec, usable_bytes, facts.len());
    }
    let of = |node: &&HostFacts| node.store.usable_bytes;
    let smallest = facts.iter().min_by_key(of).ok_or(Error::NoNodes)?;
    let largest = facts.iter().max_by_key(of).map_or(0, |node| node.store.usable_bytes);
    let (count, copies) = (facts.len() as u64, u64::from(spec.redundancy));
    let usable_bytes = (smallest.store.usable_bytes / SHARE_PERCENT * 100)
        .saturating_mul(count)
        .checked_div(copies)
        .unwrap_or_default();
    let asked_bytes = spec.capacity_bytes;
    let capacity_bytes = asked_bytes.unwrap_or(usable_bytes).min(usable_bytes);
    let store = format!("{} on {count} nodes", smallest.store.name);
    if let (Some(asked_bytes), true) = (asked_bytes, spec.strict_capacity)
        && asked_bytes > capacity_bytes
    {
        let store = format!("{store}, of which that of node {} is the smallest,", smallest.name);
        return Err(LessThanAsked { asked_bytes, usable_bytes, store }.into());
    }
    if largest > smallest.store.usable_bytes.saturating_mul(2) && capacity_bytes == usable_bytes {
        spec.messages.warning(&format!(
            "node {} has the smallest store, {}: it limits the namespace to {}",
            smallest.name,
            HumanBytes(smallest.store.usable_bytes),
            HumanBytes(capacity_bytes)
        ));
    }
    Ok(StoreUsed {
        store,
        in_memory: facts.iter().any(|node| node.store.in_memory),
        nodes: u32::try_from(facts.len()).unwrap_or(u32::MAX),
        copies: spec.redundancy,
        enforced: spec.enforces_capacity(),
        capacity_bytes,
        asked_bytes,
    })
}

/// The size of a namespace whose engine says what it has.
fn size_of_engine(spec: &SessionSpec, usable_bytes: u64, nodes: usize) -> Result<StoreUsed, Error> {
    let store = format!("profile {}", spec.engine.name());
    let asked_bytes = spec.capacity_bytes;
    let capacity_bytes = asked_bytes.unwrap_or(usable_bytes).min(usable_bytes);
    match asked_bytes {
        Some(asked_bytes) if spec.strict_capacity && asked_bytes > capacity_bytes => {
            Err(LessThanAsked { asked_bytes, usable_bytes, store }.into())
        }
        _ => Ok(StoreUsed {
            store,
            in_memory: false,
            nodes: u32::try_from(nodes).unwrap_or(u32::MAX),
            copies: spec.redundancy,
            enforced: spec.enforces_capacity(),
            capacity_bytes,
            asked_bytes,
        }),
    }
}

fn nodes_use(spec: &SessionSpec, nodes: &Nodes, settled: &SessionPlan) -> NodesUse {
    let agents = nodes.agents();
    let text = |words: &Vec<std::ffi::OsString>| {
        words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
    };
    // The engine has a place of its own, which its command measured.
    let is_elsewhere = settled.facts.iter().any(|node| node.engine_bytes.is_some());
    NodesUse {
        engine: spec.engine.name().to_owned(),
        nodes: agents.names.clone(),
        commands: agents.commands.iter().map(text).collect(),
        directory: agents.directory.clone(),
        data: settled.facts.iter().map(|node| settled.request.data_directory(node)).collect(),
        in_memory: settled.used.in_memory,
        mounted: spec.engine.mounts() && !spec.namespaces.is_empty(),
        redundancy: spec.redundancy,
        stores: settled.facts.iter().map(|node| node.store.name.clone()).collect(),
        share_bytes: (!is_elsewhere).then(|| settled.request.share_bytes(settled.facts.len())),
    }
}

/// Makes the directories of the job on all nodes.
fn claim(spec: &SessionSpec, nodes: &Arc<Nodes>, settled: &SessionPlan) -> Result<(), Error> {
    let requests = settled.facts.iter().enumerate().map(|(node, facts)| {
        let claim = Claim {
            data: settled.request.data_directory(facts),
            private: spec.private,
            shown_at: spec.namespaces.is_empty().then(|| settled.request.mount()),
            node_local: spec.node_local.clone(),
        };
        (node, Request::Claim(claim))
    });
    let answers = nodes.ask(requests.collect(), CLAIM_MAX, &|| true);
    for (node, answer) in answers.into_iter().enumerate() {
        let failed = |message| Error::Node { node: nodes.name(node).to_owned(), message };
        match answer {
            Ok(Answer::Done) => {}
            Ok(Answer::Failed { message, .. }) | Err(message) => return Err(failed(message)),
            Ok(_) => return Err(failed(crate::nodes::UNEXPECTED.to_owned())),
        }
    }
    Ok(())
}

/// Writes down how a later command reads the data after the engine ended.
fn write_recovery(
    spec: &SessionSpec,
    settled: &SessionPlan,
    watch: &WatchPlan,
    nodes_use: &NodesUse,
) -> Result<(), Error> {
    if spec.namespaces.is_empty() {
        return Ok(()); // there is no engine
    }
    let recovery = Recovery {
        plan: spec.engine.recover(&settled.request, &settled.facts),
        servers: watch.servers.clone(),
        survives_node: watch.promise.survives_node,
        watch: Some(watch.clone()),
    };
    let path = nodes_use.recovery();
    files::write_json(&path, &path.with_extension("fresh"), &recovery)?;
    Ok(())
}

/// The plan of the engine; without steps if the job has private namespaces only.
fn plan_of(spec: &SessionSpec, settled: &SessionPlan) -> Result<EnginePlan, Error> {
    if spec.namespaces.is_empty() {
        let mount = settled.request.mount();
        return Ok(EnginePlan { mount, ..EnginePlan::default() });
    }
    let plan = spec.engine.plan(&settled.request, &settled.facts);
    plan.map_err(|message| Error::EngineRefuses { engine: spec.engine.name().to_owned(), message })
}

/// The files that each node writes to see whether the engine answers.
fn probes(spec: &SessionSpec, mount: &Path, nodes: usize) -> Vec<Vec<PathBuf>> {
    if spec.namespaces.is_empty() {
        return vec![Vec::new(); nodes];
    }
    (0..nodes)
        .map(|node| {
            (0..spec.engine.probes()).map(|number| probe_file(mount, node, number)).collect()
        })
        .collect()
}

pub(crate) fn probe_file(mount: &Path, node: usize, number: usize) -> PathBuf {
    mount.join(PROBES).join(format!("{node}.{number}"))
}

/// Makes the namespaces, unless the engine did, and the directory of the probes. The private namespace is a link, which leads to
/// the own directory on each node.
fn prepare_namespace(mount: &Path, spec: &SessionSpec, nodes: &Nodes) -> Result<(), Error> {
    if spec.namespaces.is_empty() {
        return Ok(()); // each node has its private namespace
    }
    files::make_directory(&mount.join(PROBES), 0o700)?;
    for namespace in &spec.namespaces {
        files::make_directories(&mount.join(namespace), 0o755)?;
    }
    if spec.private {
        let private = nodes.agents().directory.join(PRIVATE);
        files::make_link(&private, &mount.join(PRIVATE))?;
    }
    Ok(())
}
