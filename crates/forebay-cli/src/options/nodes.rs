//! Options of an allocation over several nodes.
//! Assumes that this machine is one of the nodes, and otherwise refuses. Never starts a process on another node.

use std::path::PathBuf;

use clap::Args;
use forebay_directive::{AccessMode, JobDw};
use forebay_engine::{Coherence, LocalFiles, Profile};
use forebay_host::{network, system};
use forebay_job::NodeOptions;
use forebay_scheduler::{
    NodeLauncher, expand_node_list, node_names_in, node_names_of_job, nodes_of_batch_script,
};
use forebay_terminal::{CliError, print_warning};

use crate::{effective_config, profiles};

/// The nodes of a job, and the engine that gives them one namespace.
#[derive(Debug, Args)]
pub struct NodeArguments {
    /// Nodes of the allocation, such as n1,n2 or n[1-16]; this node is one of them
    /// [default: the nodes of the scheduler's job]
    #[arg(long, value_name = "NODES", value_delimiter = ',')]
    pub nodes: Vec<String>,
    /// File with one node a line
    #[arg(long, value_name = "FILE", conflicts_with = "nodes")]
    pub hostfile: Option<PathBuf>,
    /// Engine of the namespace over all nodes [default: the first that keeps the request]
    #[arg(long, value_name = "NAME")]
    pub engine: Option<String>,
    /// Named engine with options: a name that forebay engine list shows, or a file [default: profile= of #DW jobdw]
    #[arg(
        long = "engine-profile",
        alias = "profile",
        value_name = "NAME",
        conflicts_with = "engine"
    )]
    pub profile: Option<String>,
    /// Directory of an engine that forebay engine bundle wrote, on each node [default: the engine of the system]
    #[arg(long, value_name = "DIR")]
    pub engine_root: Option<PathBuf>,
    /// What other nodes must see: strict (each write at once) or close_to_open
    #[arg(long, value_name = "WHAT", default_value = "strict")]
    pub coherence: Coherence,
    /// Copies of the data on different nodes: with 2 the job continues when a node is lost
    /// [default: redundancy= of #DW jobdw, else that of the profile, else 1]
    #[arg(long, value_name = "COPIES")]
    pub redundancy: Option<u32>,
    /// Metadata servers that share the directories of the namespace, on as many nodes
    /// [default: that of the profile, else 1]
    #[arg(long, value_name = "SERVERS")]
    pub metadata_servers: Option<u32>,
    /// Keep files of MPI-IO strict. Otherwise nodes see each other's writes after MPI_File_sync and MPI_File_close only,
    /// as MPI promises, which is faster
    #[arg(long)]
    pub no_lazy_io: bool,
    /// How processes are started on other nodes: srun, ssh, mpiexec, blaunch, pbs_tmrsh, flux, or a command with {node}
    /// [default: that of the scheduler, else ssh]
    #[arg(long, value_name = "COMMAND", value_parser = NodeLauncher::parse)]
    pub launcher: Option<NodeLauncher>,
    /// Parent of the job's directory on each node
    #[arg(long, value_name = "DIR", default_value = "/tmp")]
    pub node_dir: PathBuf,
}

impl NodeArguments {
    /// The options for the job; none if it has one node.
    ///
    /// # Errors
    /// If the nodes cannot be listed or reached, or this one is none of them.
    pub fn options(&self, asked: Option<&JobDw>) -> Result<Option<NodeOptions>, CliError> {
        let of_directive = asked.and_then(|asked| asked.profile.as_deref());
        let is_chosen = self.engine.is_some() || self.profile.is_some();
        // Also without nodes: a wrong name on the command line is an error everywhere.
        let of_command = self.profile.as_deref().map(profiles::find).transpose()?;
        let Some(names) = self.names().map_err(CliError::new)? else {
            self.warn_on_one_node(asked);
            return Ok(None);
        };
        self.check_in_job(&names)?;
        if names.len() == 1 {
            self.warn_on_one_node(asked);
        }
        let profile = match of_directive {
            Some(name) if is_chosen => {
                warn_of_setting(name);
                of_command
            }
            Some(name) => Some(profiles::find(name)?),
            None => of_command,
        };
        let mut options = self.options_of(local_first(names)?, profile)?;
        if let Some(asked) = asked {
            if !asked.access.contains(&AccessMode::Striped) {
                without_effect(layout_words(asked), "with access_mode=private alone");
            }
            options.redundancy = self.redundancy.or(asked.redundancy).unwrap_or(options.redundancy);
            options.stripe_bytes = asked.stripe_bytes;
            if asked.is_local {
                options.local_files = LocalFiles::All;
            }
        }
        Ok(Some(options))
    }

    /// Refuses nodes that are not in the scheduler's job: its launcher starts nothing there.
    fn check_in_job(&self, names: &[String]) -> Result<(), CliError> {
        if self.launcher.is_some() || (self.nodes.is_empty() && self.hostfile.is_none()) {
            return Ok(());
        }
        let Some(of_job) = node_names_of_job().map_err(CliError::new)? else { return Ok(()) };
        let is_in_job = |name: &&String| of_job.iter().any(|other| short(other) == short(name));
        match names.iter().find(|name| !is_in_job(name)) {
            None => Ok(()),
            Some(name) => Err(CliError::new(format!(
                "node {name} is not in this job, which has {}",
                of_job.join(", ")
            ))
            .with_hint(
                "leave out --nodes, or name another way to start processes with --launcher",
            )),
        }
    }

    /// Says what has no effect. A setting that is meant for jobs on several nodes is no surprise.
    fn warn_on_one_node(&self, asked: Option<&JobDw>) {
        let Some(asked) = asked else { return };
        let mut words = Vec::new();
        for (key, value) in [("engine", &self.engine), ("engine-profile", &self.profile)] {
            if let Some(value) = value.as_ref().filter(|_| effective_config::is_of_option(key)) {
                words.push(format!("--{key} {value}"));
            }
        }
        if let Some(copies @ 2..) =
            self.redundancy.filter(|_| effective_config::is_of_option("redundancy"))
        {
            words.push(format!("--redundancy {copies}"));
        }
        if let Some(servers @ 2..) =
            self.metadata_servers.filter(|_| effective_config::is_of_option("metadata-servers"))
        {
            words.push(format!("--metadata-servers {servers}"));
        }
        if let Some(profile) = asked.profile.as_ref() {
            words.push(format!("profile={profile}"));
        }
        if let Some(copies @ 2..) = asked.redundancy {
            words.push(format!("redundancy={copies}"));
        }
        words.extend(layout_words(asked));
        without_effect(words, "on one node");
    }

    /// The options for the nodes, or for this one as the only node.
    ///
    /// # Errors
    /// As of [`NodeArguments::options`].
    pub fn options_or_this_node(&self) -> Result<NodeOptions, CliError> {
        match self.options(None)? {
            Some(options) => Ok(options),
            None => {
                let profile = self.profile.as_deref().map(profiles::find).transpose()?;
                self.options_of(vec![system::hostname()], profile)
            }
        }
    }

    fn options_of(
        &self,
        names: Vec<String>,
        profile: Option<Profile>,
    ) -> Result<NodeOptions, CliError> {
        let launcher = match &self.launcher {
            Some(launcher) => launcher.clone(),
            // It is not used.
            None if names.len() == 1 => NodeLauncher::parse("ssh").map_err(CliError::new)?,
            None => NodeLauncher::choose().map_err(|error| {
                CliError::new(error)
                    .with_hint("name a way with --launcher, for example --launcher 'rsh {node}'")
            })?,
        };
        Ok(NodeOptions {
            names,
            launcher,
            engine: self.engine.clone(),
            engine_root: self.engine_root.clone(),
            coherence: self.coherence,
            redundancy: self
                .redundancy
                .or(profile.as_ref().and_then(|profile| profile.redundancy))
                .unwrap_or(1),
            metadata_servers: self.metadata_servers,
            local_files: LocalFiles::default(),
            stripe_bytes: None,
            profile,
            directory: self.node_dir.clone(),
        })
    }

    fn names(&self) -> Result<Option<Vec<String>>, String> {
        if let Some(file) = &self.hostfile {
            return node_names_in(file).map(Some);
        }
        if !self.nodes.is_empty() {
            return expand_node_list(&self.nodes.join(",")).map(Some);
        }
        // A task of srun or mpiexec is one of several on its node: it has its own.
        match nodes_of_batch_script() {
            Some(nodes) if nodes > 1 => match node_names_of_job()? {
                Some(names) => Ok(Some(names)),
                None => Err(format!(
                    "the job has {nodes} nodes, and the scheduler does not list them: name them with --nodes"
                )),
            },
            _ => Ok(None),
        }
    }
}

/// Keys of the directive that say where the data of files are.
fn layout_words(asked: &JobDw) -> Vec<String> {
    let local = asked.is_local.then(|| "placement=local".to_owned());
    let unit = asked.stripe_bytes.map(|bytes| format!("stripe_bytes={bytes}"));
    local.into_iter().chain(unit).collect()
}

fn without_effect(words: Vec<String>, why: &str) {
    for word in words {
        print_warning(&format!("{word} has no effect {why}"));
    }
}

/// Says that a setting overrides the directive. An option does so as well, but whoever wrote it knows.
fn warn_of_setting(of_directive: &str) {
    for key in ["engine", "engine-profile"] {
        if let Some(value) = effective_config::current().get(key)
            && !effective_config::is_of_option(key)
        {
            print_warning(&format!(
                "profile={of_directive} of the script has no effect: {key} is {} ({})",
                value.words.join(" "),
                value.source
            ));
        }
    }
}

/// The name of a node without its domain.
fn short(name: &str) -> &str {
    name.split('.').next().unwrap_or_default()
}

/// The same names, this machine's first.
fn local_first(mut names: Vec<String>) -> Result<Vec<String>, CliError> {
    let host = system::hostname();
    let by_name = names.iter().position(|name| *name == host || short(name) == short(&host));
    let is_here = |name: &String| {
        let addresses = network::addresses_of(name).unwrap_or_default();
        addresses.into_iter().any(|address| {
            address.is_loopback()
                || network::address_towards(&address.to_string()).is_ok_and(|own| own == address)
        })
    };
    match by_name.or_else(|| names.iter().position(is_here)) {
        Some(at) => {
            names[..=at].rotate_right(1);
            Ok(names)
        }
        None => Err(CliError::new(format!(
            "this machine, {host}, is none of the nodes {}",
            names.join(", ")
        ))
        .with_hint("start forebay run on one of the nodes, as a batch script does")),
    }
}
