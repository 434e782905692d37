//! The site's configuration: one TOML file that root owns and everybody may read.
//! Never takes a part of a file: one fault refuses it all. A user or group of a pool that nobody knows is no fault.

mod faults;
mod pools;
mod raw_site;

use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay_config::trusted_text;
use forebay_directive::AccessMode;
use forebay_host::users::Account;
use indicatif::HumanBytes;

use crate::Error;

/// Where the file is, unless [`FILE_VARIABLE`] names another one.
pub const FILE: &str = "/etc/forebay/site.toml";
/// Names another file.
pub const FILE_VARIABLE: &str = "FOREBAY_SITE";
/// The port of `forebay-noded`, unless the file names another one.
pub const NODE_PORT: u16 = 7077;

/// What a site configures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The file.
    pub file: PathBuf,
    /// The user whom slurmctld runs as.
    pub slurm_user: Account,
    /// The directory of the state, on the control host.
    pub state: PathBuf,
    /// The socket of munged; none for its usual one.
    pub munge_socket: Option<PathBuf>,
    /// The file of the secret that signs messages; none where MUNGE does.
    pub secret: Option<PathBuf>,
    /// The port of `forebay-noded` on the nodes of jobs.
    pub node_port: u16,
    /// Whether `forebay-noded` of each node of a job checks that the allocation is visible.
    pub checks_nodes: bool,
    /// How long a stage-out that fails is tried again before Slurm gets the error.
    pub stage_out_retry: Duration,
    /// How long a node that does not answer is waited for.
    pub node_wait: Duration,
    /// How long the start of a job waits for space and input on its nodes.
    pub start_wait: Duration,
    /// How long a process of a staging or removal may do nothing.
    pub stage_idle_max: Duration,
    /// The pools, at least one.
    pub pools: Vec<Pool>,
}

/// Where the space of a pool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolKind {
    /// A directory on a file system that all nodes see.
    Directory,
    /// A directory in each compute node, on storage of its own.
    OnNode,
}

/// How a file system limits the size of an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quota {
    /// A project quota of XFS or ext4.
    Project,
    /// An attribute of the directory, which the clients of CephFS obey.
    Ceph,
}

impl Quota {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Project, Self::Ceph];

    /// The word of the configuration.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Ceph => "ceph",
        }
    }
}

/// Space that jobs get parts of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// The name, as `pool=` names it.
    pub name: String,
    /// Where its space is.
    pub kind: PoolKind,
    /// The directory, which root owns. It has the same path on all nodes.
    pub path: PathBuf,
    /// The size of a granule.
    pub granularity_bytes: u64,
    /// Granules that jobs can get, without the reserve; of kind [`PoolKind::OnNode`], those of all nodes together, as far
    /// as no further copies take them.
    pub quantity: u64,
    /// Granules in one directory of the pool, without the reserve.
    pub directory_granules: u64,
    /// Granules that no job gets.
    pub reserve: u64,
    /// Names of users who may use it. Empty together with `groups`: everybody.
    pub users: Vec<String>,
    /// Names of groups whose members may use it.
    pub groups: Vec<String>,
    /// How the file system limits each allocation; none if it does not.
    pub quota: Option<Quota>,
    /// The most that one user has at a time.
    pub user_bytes_max: Option<u64>,
    /// The nodes that stage and remove data; of kind [`PoolKind::OnNode`], all that have the storage.
    pub staging_nodes: Vec<NodeAddress>,
    /// The highest rate of one staging.
    pub stage_bytes_per_s_max: Option<u64>,
    /// The engine that gives the nodes of a job one namespace; none: each node has its own.
    pub engine: Option<String>,
    /// Copies of the data that the engine keeps on different nodes.
    pub redundancy: u32,
}

/// A node whose `forebay-noded` answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeAddress {
    /// The name of the host.
    pub name: String,
    /// The port of `forebay-noded`.
    pub port: u16,
}

impl std::fmt::Display for NodeAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{}:{}", self.name, self.port)
    }
}

impl NodeAddress {
    /// Reads `NAME` or `NAME:PORT`.
    pub fn parse(text: &str, port: u16) -> Result<Self, String> {
        let (name, port) = match text.split_once(':') {
            None => (text, Some(port)),
            Some((name, port)) => (name, port.parse().ok().filter(|port| *port != 0)),
        };
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
        let is_name = name.starts_with(|c: char| c.is_ascii_alphanumeric());
        match port {
            Some(port) if is_name && name.chars().all(is_part) => {
                Ok(Self { name: name.to_owned(), port })
            }
            _ => Err(format!("{text:?} is no node: write NAME or NAME:PORT")),
        }
    }
}

impl Site {
    /// Reads the file that [`FILE_VARIABLE`] names, or [`FILE`].
    ///
    /// # Errors
    /// All errors of the file, each with its line.
    pub fn load() -> Result<Self, Error> {
        let named = std::env::var_os(FILE_VARIABLE).map(PathBuf::from);
        Self::read(&named.unwrap_or_else(|| PathBuf::from(FILE)))
    }

    /// Reads a file.
    ///
    /// # Errors
    /// As [`Site::load`].
    pub fn read(file: &Path) -> Result<Self, Error> {
        let shown = file.display();
        let hint = format!("as root: chown root {shown}");
        let text = trusted_text(file, "site configuration", false, &hint)
            .map_err(|(message, hint)| Error::new(message).with_hint(hint))?;
        let text = text.ok_or_else(|| {
            let hint = format!(
                "write it as docs/how-to/site-slurm.md shows, or name another one in {FILE_VARIABLE}"
            );
            Error::new(format!("there is no site configuration {shown}")).with_hint(hint)
        })?;
        raw_site::parse(file, &text).map_err(|faults| Error::new(faults.join("; ")))
    }

    /// The pool with this name.
    ///
    /// # Errors
    /// If there is none.
    pub fn pool(&self, name: &str) -> Result<&Pool, Error> {
        let found = self.pools.iter().find(|pool| pool.name == name);
        found.ok_or_else(|| {
            let names: Vec<_> = self.pools.iter().map(|pool| pool.name.as_str()).collect();
            let hint = format!("the pools are: {}", names.join(", "));
            Error::new(format!("there is no pool {name}")).with_hint(hint)
        })
    }
}

impl Site {
    /// Users and groups of pools that the name services do not know. They are no fault: one that was deleted must not
    /// stop the jobs of all others.
    pub fn unknown_names(&self) -> Vec<String> {
        use forebay_host::users::{account_named, group_id};
        let of_pool = |pool: &Pool| {
            let is_unknown =
                |user: &&String| account_named(user).is_ok_and(|found| found.is_none());
            let users = pool.users.iter().filter(is_unknown);
            let users = users.map(|user| format!("pool {}: there is no user {user}", pool.name));
            let is_unknown = |group: &&String| group_id(group).is_ok_and(|found| found.is_none());
            let groups = pool.groups.iter().filter(is_unknown);
            let groups =
                groups.map(|group| format!("pool {}: there is no group {group}", pool.name));
            users.chain(groups).collect::<Vec<_>>()
        };
        self.pools.iter().flat_map(of_pool).collect()
    }
}

impl Pool {
    /// How the jobs of the pool access their allocations.
    pub fn access(&self) -> AccessMode {
        match self.kind {
            PoolKind::Directory => AccessMode::Striped,
            PoolKind::OnNode if self.engine.is_some() => AccessMode::Striped,
            PoolKind::OnNode => AccessMode::Private,
        }
    }

    /// The bytes in one directory of the pool, without the reserve.
    pub fn directory_bytes(&self) -> u64 {
        self.directory_granules.saturating_mul(self.granularity_bytes)
    }

    /// The reserve in one directory of the pool.
    pub fn directory_reserve_bytes(&self) -> u64 {
        (self.reserve / self.directories()).saturating_mul(self.granularity_bytes)
    }

    fn directories(&self) -> u64 {
        match self.kind {
            PoolKind::Directory => 1,
            PoolKind::OnNode => self.staging_nodes.len().max(1) as u64,
        }
    }

    /// The address of one of its nodes.
    pub fn node(&self, name: &str) -> Option<&NodeAddress> {
        self.staging_nodes.iter().find(|node| node.name == name)
    }

    /// The granules that hold so many bytes.
    pub fn granules_of(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.granularity_bytes)
    }

    /// Whether a user may have so many granules, if the user has no others.
    ///
    /// # Errors
    /// Says how many.
    pub fn check_user_max(&self, granules: u64) -> Result<(), Error> {
        let wanted = granules.saturating_mul(self.granularity_bytes);
        match self.user_bytes_max {
            Some(most) if wanted > most => {
                let (wanted, most, name) = (HumanBytes(wanted), HumanBytes(most), &self.name);
                let message =
                    format!("{wanted} of the pool {name} are too much: a user may have {most}");
                Err(Error::new(message).with_hint("ask for less"))
            }
            _ => Ok(()),
        }
    }

    /// Whether the user may use the pool.
    pub fn is_open_to(&self, account: &Account) -> bool {
        let is_open = self.users.is_empty() && self.groups.is_empty();
        let is_member = |group: &String| {
            // A group that the name services lost is nobody's.
            let found = forebay_host::users::group_id(group).ok().flatten();
            found.is_some_and(|found| account.groups.contains(&found))
        };
        is_open || self.users.contains(&account.name) || self.groups.iter().any(is_member)
    }
}
