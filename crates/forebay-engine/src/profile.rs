//! Profiles: named engines with options, each in a TOML file. Checks everything that can be checked without
//! the nodes. Never reads a file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_directive::closest;
use forebay_host::messages::line_of;
use serde::Deserialize;
use toml::Spanned;

use crate::engine::{Coherence, Engine, Promise};
use crate::engines::{
    Ceph, Command, LayoutScope, MountClient, NamedLayout, Placement, When, check_template,
    template_uses,
};

/// The longest time for start and other commands, in seconds. Agents wait no longer for a stop.
const START_S_MAX: u32 = 3600;
const STOP_S_MAX: u32 = 110;
const STATUS_S_MAX: u32 = 600;
const CAPACITY_S_MAX: u32 = 50;
const DEFAULT_S_MAX: u32 = 50;
const STATUS_INTERVAL_S: u32 = 10;

/// On which nodes a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandNodes {
    /// On the node where the job starts.
    First,
    /// On each node at the same time.
    Every,
}

impl CommandNodes {
    /// The indices of the nodes.
    pub(crate) fn nodes(self, count: usize) -> std::ops::Range<usize> {
        0..if self == Self::First { count.min(1) } else { count }
    }
}

/// A command with its nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeCommand {
    pub(crate) on: CommandNodes,
    /// The template of a shell script.
    pub(crate) command: String,
    pub(crate) time_s_max: u32,
}

/// The options of `engine = "command"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandProfile {
    pub(crate) promise: Promise,
    pub(crate) programs: Vec<String>,
    /// The template of the path on each node; none: the mount of the job's directory.
    pub(crate) mount: Option<String>,
    /// Whether a file system must be mounted there.
    pub(crate) mounted: bool,
    /// Whether a start command limits the job to the capacity.
    pub(crate) quota: bool,
    pub(crate) options: BTreeMap<String, String>,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) start: Vec<NodeCommand>,
    pub(crate) stop: Vec<NodeCommand>,
    pub(crate) status: Option<NodeCommand>,
    pub(crate) status_interval_s: u32,
    pub(crate) capacity: Option<NodeCommand>,
}

impl CommandProfile {
    /// Whether a command uses this variable.
    pub(crate) fn uses(&self, variable: &str) -> bool {
        let commands = self.start.iter().map(|command| &command.command);
        commands.chain(self.environment.values()).any(|text| template_uses(text, variable))
    }
}

/// The engine of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProfileEngine {
    /// Ceph, started for the job.
    Ceph(Ceph),
    /// Commands.
    Command(Arc<CommandProfile>),
}

/// A named engine with options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The name of its file without the extension.
    pub name: String,
    /// Its file.
    pub file: PathBuf,
    /// What it is, in one line.
    pub about: String,
    /// The engine.
    pub engine: ProfileEngine,
    /// Copies of the data.
    pub redundancy: Option<u32>,
    /// Metadata servers that share the names.
    pub metadata_servers: Option<u32>,
    /// Bytes of a file that are next to each other on one server.
    pub stripe_bytes: Option<u64>,
    /// The number of servers of a file.
    pub stripe_count: Option<u32>,
    /// The store on each node.
    pub store: Option<PathBuf>,
}

impl Profile {
    /// The driver.
    pub fn driver(&self) -> Box<dyn Engine> {
        match &self.engine {
            ProfileEngine::Ceph(ceph) => Box::new(ceph.clone()),
            ProfileEngine::Command(profile) => {
                Box::new(Command::new(&self.name, Arc::clone(profile)))
            }
        }
    }

    /// Reads the text of a profile.
    ///
    /// # Errors
    /// The first error, with file and line.
    pub fn parse(name: &str, file: &Path, text: &str) -> Result<Self, String> {
        let at = |byte: usize, message: &str| {
            format!("{}:{}: {message}", file.display(), line_of(text, byte))
        };
        let written: RawProfile = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            at(start, &with_suggestion(error.message()))
        })?;
        written.checked(name, file).map_err(|(byte, message)| at(byte, &message))
    }
}

/// A place in the file, in bytes, and what is wrong there.
type Fault = (usize, String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawProfile {
    engine: Spanned<String>,
    about: Option<String>,
    redundancy: Option<Spanned<u32>>,
    metadata_servers: Option<Spanned<u32>>,
    stripe_bytes: Option<Spanned<u64>>,
    stripe_count: Option<Spanned<u32>>,
    store: Option<Spanned<PathBuf>>,
    client: Option<Spanned<String>>,
    layouts: Option<Spanned<Vec<RawLayout>>>,
    promise: Option<Spanned<RawPromise>>,
    programs: Option<Spanned<Vec<String>>>,
    mount: Option<Spanned<String>>,
    mounted: Option<Spanned<bool>>,
    quota: Option<Spanned<bool>>,
    options: Option<Spanned<BTreeMap<String, String>>>,
    environment: Option<Spanned<BTreeMap<String, Spanned<String>>>>,
    start: Option<Spanned<Vec<RawCommand>>>,
    stop: Option<Spanned<Vec<RawCommand>>>,
    status: Option<Spanned<RawCommand>>,
    capacity: Option<Spanned<RawCommand>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLayout {
    names: Option<Spanned<String>>,
    directories: Option<Spanned<String>>,
    stripe_bytes: Option<u64>,
    placement: Option<Placement>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPromise {
    coherence: Coherence,
    #[serde(default)]
    atomic_append: bool,
    #[serde(default)]
    locks: bool,
    #[serde(default)]
    shared_mmap: bool,
    #[serde(default)]
    striping: bool,
    #[serde(default)]
    survives_server: bool,
    #[serde(default)]
    survives_node: bool,
    #[serde(default)]
    survives_restart: bool,
    #[serde(default)]
    deviations: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCommand {
    on: CommandNodes,
    command: Spanned<String>,
    time_s_max: Option<Spanned<u32>>,
    interval_s: Option<Spanned<u32>>,
}

impl RawProfile {
    fn checked(self, name: &str, file: &Path) -> Result<Profile, Fault> {
        let positive = |number: &Option<Spanned<u32>>, key: &str| match number {
            Some(number) if *number.get_ref() == 0 => {
                Err((number.span().start, format!("{key}: write a number from 1")))
            }
            _ => Ok(()),
        };
        positive(&self.redundancy, "redundancy")?;
        positive(&self.metadata_servers, "metadata_servers")?;
        positive(&self.stripe_count, "stripe_count")?;
        if let Some(bytes) = self.stripe_bytes.as_ref().filter(|bytes| *bytes.get_ref() == 0) {
            return Err((bytes.span().start, "stripe_bytes: write a number from 1".to_owned()));
        }
        if let Some(store) = self.store.as_ref().filter(|store| store.get_ref().is_relative()) {
            return Err((store.span().start, "store: the path is relative".to_owned()));
        }
        let engine = match self.engine.get_ref().as_str() {
            "ceph" => {
                self.without_commands()?;
                ProfileEngine::Ceph(Ceph {
                    client: self.client()?,
                    layouts: self.layouts()?,
                    ..Ceph::default()
                })
            }
            "command" => {
                self.without_ceph()?;
                ProfileEngine::Command(Arc::new(self.command_profile()?))
            }
            other => {
                let hint = match closest(other, ["ceph", "command"]) {
                    Some(meant) => format!("did you mean {meant}?"),
                    None => "write ceph or command".to_owned(),
                };
                return Err((self.engine.span().start, format!("no engine {other}; {hint}")));
            }
        };
        Ok(Profile {
            name: name.to_owned(),
            file: file.to_owned(),
            about: self.about.unwrap_or_default(),
            engine,
            redundancy: self.redundancy.map(Spanned::into_inner),
            metadata_servers: self.metadata_servers.map(Spanned::into_inner),
            stripe_bytes: self.stripe_bytes.map(Spanned::into_inner),
            stripe_count: self.stripe_count.map(Spanned::into_inner),
            store: self.store.map(Spanned::into_inner),
        })
    }

    /// The client that a profile of Ceph names.
    fn client(&self) -> Result<Option<MountClient>, Fault> {
        let Some(written) = &self.client else { return Ok(None) };
        let name = written.get_ref();
        let all = MountClient::ALL;
        match all.into_iter().find(|client| client.name() == name) {
            Some(client) => Ok(Some(client)),
            None => {
                let hint = match closest(name, all.map(MountClient::name)) {
                    Some(meant) => format!("did you mean {meant}?"),
                    None => format!("write {}", all.map(MountClient::name).join(" or ")),
                };
                Err((written.span().start, format!("no client {name}; {hint}")))
            }
        }
    }

    /// The layouts by names of a profile of Ceph.
    fn layouts(&self) -> Result<Vec<NamedLayout>, Fault> {
        let Some(all) = &self.layouts else { return Ok(Vec::new()) };
        let written = all.get_ref().iter();
        written.map(|layout| layout.checked(all.span().start)).collect()
    }

    /// Keys of `ceph` in a profile of another engine.
    fn without_ceph(&self) -> Result<(), Fault> {
        let keys = [
            ("client", self.client.as_ref().map(|client| client.span().start)),
            ("layouts", self.layouts.as_ref().map(|layouts| layouts.span().start)),
            ("metadata_servers", self.metadata_servers.as_ref().map(|count| count.span().start)),
        ];
        match keys.into_iter().find_map(|(key, start)| Some((key, start?))) {
            Some((key, start)) => {
                Err((start, format!("{key} is a key of engine = \"ceph\", not of command")))
            }
            None => Ok(()),
        }
    }

    /// Keys of `command` in a profile of another engine.
    fn without_commands(&self) -> Result<(), Fault> {
        fn start<T>(value: &Option<Spanned<T>>) -> Option<usize> {
            value.as_ref().map(|value| value.span().start)
        }
        let keys = [
            ("promise", start(&self.promise)),
            ("programs", start(&self.programs)),
            ("mount", start(&self.mount)),
            ("mounted", start(&self.mounted)),
            ("quota", start(&self.quota)),
            ("options", start(&self.options)),
            ("environment", start(&self.environment)),
            ("start", start(&self.start)),
            ("stop", start(&self.stop)),
            ("status", start(&self.status)),
            ("capacity", start(&self.capacity)),
        ];
        match keys.into_iter().find_map(|(key, start)| Some((key, start?))) {
            Some((key, start)) => {
                Err((start, format!("{key} is a key of engine = \"command\", not of ceph")))
            }
            None => Ok(()),
        }
    }

    fn command_profile(&self) -> Result<CommandProfile, Fault> {
        let needed =
            |key: &str| (self.engine.span().start, format!("engine command: {key} is missing"));
        let promise = self.promise.as_ref().ok_or_else(|| needed("[promise] with coherence"))?;
        let start = self.start.as_ref().ok_or_else(|| needed("[[start]]"))?;
        let stop = self.stop.as_ref().ok_or_else(|| needed("[[stop]]"))?;
        let options = self.options.as_ref().map(|all| all.get_ref().clone()).unwrap_or_default();
        if let Some(mount) = &self.mount {
            let checked = check_template(mount.get_ref(), When::Mount, &options);
            checked.map_err(|error| (mount.span().start, format!("mount: {error}")))?;
        }
        let variables = self.environment.iter().flat_map(|all| all.get_ref());
        for (name, value) in variables.clone() {
            // The capacity command has these variables, too.
            let when = if self.capacity.is_some() { When::Capacity } else { When::Command };
            let checked = check_template(value.get_ref(), when, &options);
            let named = |error| (value.span().start, format!("environment.{name}: {error}"));
            checked.map_err(named)?;
        }
        let environment =
            variables.map(|(name, value)| (name.clone(), value.get_ref().clone())).collect();
        let all = |commands: &Spanned<Vec<RawCommand>>, key, s_max| {
            let commands = commands.get_ref().iter();
            commands
                .map(|one| one.checked(key, s_max, When::Command, &options))
                .collect::<Result<Vec<_>, _>>()
        };
        let one = |command: &Option<Spanned<RawCommand>>, key, s_max, when| {
            let checked = command.as_ref().map(|command| command.get_ref());
            checked.map(|command| command.checked(key, s_max, when, &options)).transpose()
        };
        let interval = self.status.as_ref().and_then(|status| status.get_ref().interval_s.as_ref());
        let profile = CommandProfile {
            promise: promise.get_ref().promise(),
            programs: self.programs.as_ref().map(|all| all.get_ref().clone()).unwrap_or_default(),
            mount: self.mount.as_ref().map(|mount| mount.get_ref().clone()),
            mounted: self.mounted.as_ref().is_some_and(|mounted| *mounted.get_ref()),
            quota: self.quota.as_ref().is_some_and(|quota| *quota.get_ref()),
            start: all(start, "start", START_S_MAX)?,
            stop: all(stop, "stop", STOP_S_MAX)?,
            status: one(&self.status, "status", STATUS_S_MAX, When::Command)?,
            status_interval_s: interval.map_or(STATUS_INTERVAL_S, |value| *value.get_ref()),
            capacity: one(&self.capacity, "capacity", CAPACITY_S_MAX, When::Capacity)?,
            environment,
            options,
        };
        match self.quota.as_ref().filter(|_| profile.quota && !profile.uses("capacity_bytes")) {
            Some(quota) => {
                Err((quota.span().start, "quota: no start command uses capacity_bytes".to_owned()))
            }
            None => Ok(profile),
        }
    }
}

impl RawLayout {
    /// `place` is where the layouts begin.
    fn checked(&self, place: usize) -> Result<NamedLayout, Fault> {
        let (named, written) = match (&self.names, &self.directories) {
            (Some(names), None) => (LayoutScope::Files, names),
            (None, Some(directories)) => (LayoutScope::Directories, directories),
            _ => return Err((place, "layouts: write either names or directories".to_owned())),
        };
        let pattern = written.get_ref();
        let at = |why: &str| (written.span().start, format!("layouts: {}: {why}", named.key()));
        glob::Pattern::new(pattern).map_err(|error| at(error.msg))?;
        if pattern.contains('/') {
            return Err(at("write a pattern for names, without /"));
        }
        if self.stripe_bytes.is_none() && self.placement.is_none() {
            return Err(at("write stripe_bytes or placement, too"));
        }
        Ok(NamedLayout {
            named,
            pattern: pattern.clone(),
            stripe_unit_bytes: self.stripe_bytes,
            placement: self.placement.unwrap_or_default(),
        })
    }
}

impl RawPromise {
    fn promise(&self) -> Promise {
        Promise {
            coherence: self.coherence,
            atomic_append: self.atomic_append,
            locks: self.locks,
            shared_mmap: self.shared_mmap,
            striping: self.striping,
            survives_server: self.survives_server,
            survives_node: self.survives_node,
            survives_restart: self.survives_restart,
            deviations: self.deviations.clone(),
        }
    }
}

impl RawCommand {
    fn checked(
        &self,
        key: &str,
        s_max: u32,
        when: When,
        options: &BTreeMap<String, String>,
    ) -> Result<NodeCommand, Fault> {
        let checked = check_template(self.command.get_ref(), when, options);
        checked.map_err(|error| (self.command.span().start, format!("{key}: {error}")))?;
        if let Some(interval) = &self.interval_s
            && (key != "status" || *interval.get_ref() == 0)
        {
            let what = format!("{key}: interval_s is a key of status, a number from 1");
            return Err((interval.span().start, what));
        }
        let time_s_max = self.time_s_max.as_ref().map_or(DEFAULT_S_MAX, |time| *time.get_ref());
        if !(1..=s_max).contains(&time_s_max) {
            let place = self.time_s_max.as_ref().map_or(0, |time| time.span().start);
            return Err((place, format!("{key}: time_s_max is a number from 1 to {s_max}")));
        }
        Ok(NodeCommand { on: self.on, command: self.command.get_ref().clone(), time_s_max })
    }
}

/// Adds a suggestion to the message about an unknown key.
fn with_suggestion(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    let mut words = line.split('`').skip(1).step_by(2);
    let is_unknown = line.starts_with("unknown field") || line.starts_with("unknown variant");
    let suggestion = words.next().filter(|_| is_unknown).and_then(|word| closest(word, words));
    match suggestion {
        Some(meant) => format!("{line}; did you mean {meant}?"),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests;
