//! The allocation of a job on several nodes: chooses the engine and starts it. Never stages.
//! Assumes that the first name is this node's: its agent starts without the launcher.

use std::ffi::OsString;
use std::path::PathBuf;

use forebay_cluster::{AgentSpec, Session, SessionSpec, directory_of, hang_s_max, lost_s_max};
use forebay_directive::{AccessMode, JobDw, Request};
use forebay_engine::engines::{engine_named, engines};
use forebay_engine::{
    AllocationDirectory, Coherence, Engine, JobAllocation, Layout, Ledger, LocalFiles, Profile,
    Step,
};
use forebay_host::process::Events;
use forebay_host::{files, system};
use forebay_record::RecordFile;
use forebay_scheduler::NodeLauncher;
use forebay_store::Allocation;

use crate::Error;
use crate::context::JobContext;
use crate::job_spec::{JobSpec, Reporter};

/// The options of a job on several nodes.
#[derive(Debug, Clone)]
pub struct NodeOptions {
    /// The names of the nodes. The first is this one.
    pub names: Vec<String>,
    /// How processes are started on the others.
    pub launcher: NodeLauncher,
    /// The name of the engine; none: the first that keeps the request.
    pub engine: Option<String>,
    /// The named engine with its options; takes the place of `engine`.
    pub profile: Option<Profile>,
    /// The directory of an engine that is carried along; none: that of the system.
    pub engine_root: Option<PathBuf>,
    /// The least coherence that the job accepts.
    pub coherence: Coherence,
    /// Copies of the data.
    pub redundancy: u32,
    /// Metadata servers that share the names; none: as the profile says, else as many as the engine has.
    pub metadata_servers: Option<u32>,
    /// Which files are stored on the node that creates them.
    pub local_files: LocalFiles,
    /// Bytes of a file that are next to each other on one server; none: as the profile says.
    pub stripe_bytes: Option<u64>,
    /// The parent of the job's directory on each node.
    pub directory: PathBuf,
}

impl NodeOptions {
    /// The engine.
    ///
    /// # Errors
    /// If there is none of this name, or none that keeps the request.
    pub fn engine(&self) -> Result<Box<dyn Engine>, Error> {
        let engine = self.chosen_engine()?;
        match (self.local_files, engine.with_local_files(self.local_files)) {
            (_, Some(with_local_files)) => Ok(with_local_files),
            (LocalFiles::All, None) => Err(Error::NoLocalFiles(engine.name().to_owned())),
            (_, None) => Ok(engine),
        }
    }

    fn chosen_engine(&self) -> Result<Box<dyn Engine>, Error> {
        if let Some(profile) = &self.profile {
            return Ok(profile.driver());
        }
        match &self.engine {
            Some(name) => engine_named(name).ok_or_else(|| Error::NoEngine(name.clone())),
            None => {
                let first = engines().into_iter().find(|engine| {
                    engine.promise(self.redundancy, true, &[]).coherence >= self.coherence
                });
                first.ok_or_else(|| Error::NoEngine(self.coherence.to_string()))
            }
        }
    }

    /// Metadata servers that share the names; none: as many as the engine has.
    pub fn metadata_servers(&self) -> Option<u32> {
        let profile = self.profile.as_ref();
        self.metadata_servers.or_else(|| profile.and_then(|profile| profile.metadata_servers))
    }

    /// How files are distributed: as the directive says, else the profile.
    pub fn layout(&self) -> Layout {
        let profile = self.profile.as_ref();
        let default = Layout::default();
        Layout {
            stripe_unit_bytes: self
                .stripe_bytes
                .or(profile.and_then(|profile| profile.stripe_bytes))
                .unwrap_or(default.stripe_unit_bytes),
            stripe_count: profile.and_then(|profile| profile.stripe_count),
        }
    }

    /// How the nodes are reached by the agents of the allocation `id`.
    ///
    /// # Errors
    /// If the launcher cannot name them.
    pub fn agents(&self, id: &str) -> Result<AgentSpec, Error> {
        let agent = [system::this_program()?.into_os_string(), "__node".into()];
        let command = |(index, name): (usize, &String)| -> Result<Vec<OsString>, Error> {
            if index == 0 {
                return Ok(agent.to_vec());
            }
            self.launcher.command_on(name, &agent).map_err(Error::Launcher)
        };
        Ok(AgentSpec {
            names: self.names.clone(),
            commands: self.names.iter().enumerate().map(command).collect::<Result<_, _>>()?,
            directory: directory_of(&files::real_path(&self.directory)?, id)?,
            lost_s_max: lost_s_max(),
        })
    }
}

impl JobSpec<'_> {
    /// The nodes of the allocation, if it is on more than this one.
    pub(crate) fn nodes_of(&self, request: &Request) -> Option<&NodeOptions> {
        let is_on_file_system = self.store_options.pfs_directory.is_some();
        let nodes = self.nodes.as_ref().filter(|nodes| nodes.names.len() > 1)?;
        (request.job.is_some() && !is_on_file_system).then_some(nodes)
    }

    /// What the job needs from its nodes.
    pub(crate) fn session_spec<'a>(
        &'a self,
        nodes: &'a NodeOptions,
        asked: &JobDw,
        engine: &'a dyn Engine,
        (id, messages): (&'a str, &'a dyn Reporter),
    ) -> Result<SessionSpec<'a>, Error> {
        let options = &self.store_options;
        if !options.maps.is_empty() {
            return Err(forebay_engine::Error::NoView(VIEW_IS_LOCAL.to_owned()).into());
        }
        let of_profile = nodes.profile.as_ref().and_then(|profile| profile.store.as_deref());
        Ok(SessionSpec {
            id,
            engine,
            engine_root: nodes.engine_root.as_deref(),
            store: options.store.or(of_profile).or(options.site_store),
            capacity_bytes: options.capacity_bytes.or(asked.capacity_bytes),
            strict_capacity: options.strict_capacity,
            redundancy: nodes.redundancy,
            metadata_servers: nodes.metadata_servers(),
            layout: nodes.layout(),
            coherence: nodes.coherence,
            namespaces: asked
                .access
                .iter()
                .filter(|mode| **mode != AccessMode::Private)
                .map(|mode| mode.directory().to_owned())
                .collect(),
            private: asked.access.contains(&AccessMode::Private),
            node_local: self.node_local_path(),
            hang_s_max: hang_s_max(),
            messages,
        })
    }
}

impl JobContext<'_> {
    /// Starts the engine on all nodes.
    pub(crate) fn start_engine(
        &self,
        nodes: &NodeOptions,
        recorded: &mut RecordFile,
        events: &Events,
    ) -> Result<(Session, JobAllocation), Error> {
        let options = &self.spec.store_options;
        let Some(asked) = &self.request.job else { return Err(Error::NoCommand) };
        let engine = nodes.engine()?;
        let whose = (self.directory.id(), self.reporter);
        let spec = self.spec.session_spec(nodes, asked, engine.as_ref(), whose)?;
        let stops = events.stops();
        let should_continue = || stops.count() == 0;
        let mut record = |used: &forebay_engine::NodesUse| {
            recorded.record_step(Step::Nodes(used.clone()))?;
            let capacity_bytes = options.capacity_bytes.unwrap_or_default();
            let place = AllocationDirectory { root: used.mount(), mounted: false, capacity_bytes };
            recorded.record_step(Step::Allocation(place))
        };
        let started = Session::start(&spec, nodes.agents(spec.id)?, &mut record, &should_continue);
        if let Err(error) = &started
            && !matches!(error, forebay_cluster::Error::EngineLeft { .. })
        {
            // Nothing is left on the nodes, so nothing is to be removed there.
            recorded.update(|record| {
                record.nodes = None;
                record.place = None;
            })?;
        }
        let session = started.map_err(|error| match error {
            _ if stops.count() > 0
                && !matches!(error, forebay_cluster::Error::EngineLeft { .. }) =>
            {
                Error::Stopped
            }
            error => error.into(),
        })?;
        session.launchers().into_iter().for_each(|pid| events.exclude_pid(pid));
        let used = session.store_used().clone();
        recorded.update(|record| {
            if let Some(place) = &mut record.place {
                place.capacity_bytes = used.capacity_bytes;
            }
        })?;
        self.reporter.allocated(&used);
        for deviation in &session.promise().deviations {
            self.reporter.explain(&format!("engine {}: {deviation}", spec.engine.name()));
        }
        let allocation = Allocation::found(session.mount().to_owned(), false);
        Ok((session, JobAllocation { allocation, used }))
    }
}

/// Why maps are refused.
const VIEW_IS_LOCAL: &str = "processes on the other nodes of the job would be outside of it";
