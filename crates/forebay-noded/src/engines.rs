//! The processes of engines, which give the nodes of a job one namespace. They are the owner's, in one cgroup for each
//! allocation, and go on when this daemon ends: a later one finds them by the cgroup.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use forebay_host::process::{
    Cgroups, Credentials, KeptCgroup, Service, command, sealed_input, start_service_as_user,
};
use forebay_host::tcp::Connection;
use forebay_host::{cgroup, clock, files, threads};
use forebay_site::messages::{Outcome, PoolAllocation};
use forebay_site::{Error, Pool, Site};
use parking_lot::Mutex;

use crate::engine_process::{ENGINE, EngineSpec, NOTHING};
use crate::engine_proof::AgentRequest;
use crate::owner::{THIS_PROGRAM, credentials};
use crate::pool::{PoolDirectory, is_name};
use crate::requests::is_same_node;

/// The begin of the name of the cgroup that has those of the engines. An epilog knows them by it.
const CGROUP: &str = "forebay-engines";
/// Agents of one allocation on this node at a time. One is enough, and a new one ends the one before it.
const AGENTS_MAX: usize = 32;
/// Bytes of the line with which the first process says that the engine serves.
const LINE_BYTES_MAX: u64 = 64 << 10;
/// How often a start looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);
/// How long after its end the first process of an engine is started again.
const PAUSE: Duration = Duration::from_secs(10);

/// The engines of this node.
pub(crate) struct Engines {
    site: Site,
    /// The name of this node.
    node: String,
    /// None where this daemon can make no cgroup: no pool has an engine then.
    cgroups: Option<Cgroups>,
    /// Agents of each allocation.
    agents: Mutex<HashMap<String, usize>>,
    /// Allocations that are being removed. Locked while a process is started for one that is not.
    removing: Mutex<HashSet<String>>,
    log: fn(&str),
}

impl Engines {
    /// The engines of the node `name`.
    ///
    /// # Errors
    /// If a pool of this node has an engine, and no cgroup can be made for it.
    pub(crate) fn of(
        site: &Site,
        name: &str,
        is_needed: bool,
        log: fn(&str),
    ) -> Result<Self, Error> {
        let ours = cgroup::of_this_process();
        let opened = ours.and_then(|ours| Cgroups::open(&ours, &format!("{CGROUP}.{name}")));
        if let (Err(error), true) = (&opened, is_needed) {
            return Err(Error::new(format!("an engine needs a cgroup of version 2: {error}"))
                .with_hint("is Delegate=yes in the unit of forebay-noded?"));
        }
        let (site, node, cgroups) = (site.clone(), name.to_owned(), opened.ok());
        Ok(Self { site, node, cgroups, agents: Mutex::default(), removing: Mutex::default(), log })
    }

    /// Watches what a former daemon left running.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(crate) fn watch_all(self: &Arc<Self>) -> Result<(), Error> {
        let Some(cgroups) = &self.cgroups else { return Ok(()) };
        for name in cgroups.names()? {
            if let Ok(name) = name.into_string() {
                let engines = Arc::clone(self);
                threads::spawn(move || engines.keep_watched(&name))?;
            }
        }
        Ok(())
    }

    /// Starts the first process of an engine again whenever it has ended, until the allocation is removed.
    fn keep_watched(self: &Arc<Self>, name: &str) {
        loop {
            clock::sleep(PAUSE);
            let started = self.on_existing(name, |directory, who| {
                let words = ["resume".into(), directory.as_os_str().to_owned()];
                self.run(name, &words, who, (Stdio::null(), Stdio::null()))
            });
            match started.and_then(|service| Ok(service.wait()?)) {
                Ok(Some(NOTHING)) => return, // this is not the first node
                Ok(_) => {}
                Err(_) if self.removing.lock().contains(name) => {}
                Err(_) if matches!(self.found(name), Ok(None)) => return, // it was removed
                Err(error) => {
                    (self.log)(&format!("warning: the engine of {name} is not watched: {error}"));
                }
            }
        }
    }

    /// Starts the engine of an allocation on its nodes, of which this is the first, and waits until it serves, or
    /// `should_continue` is false.
    ///
    /// # Errors
    /// If the first process cannot be started.
    pub(crate) fn start(
        self: &Arc<Self>,
        place: &PoolAllocation,
        wanted: &EngineSpec,
        should_continue: &dyn Fn() -> bool,
    ) -> Result<Outcome, Error> {
        let input = serde_json::to_vec(wanted).map_err(|error| Error::new(error.to_string()))?;
        let stdio = (sealed_input(&input)?, Stdio::piped());
        let who = credentials(place, place.group)?;
        let mut service = self.run(&place.name, &["hold".into()], who, stdio)?;
        let (sender, receiver) = mpsc::channel();
        let output = service.take_output();
        let (engines, name) = (Arc::clone(self), place.name.clone());
        threads::spawn(move || {
            let outcome = output.and_then(outcome_of);
            let serves = matches!(outcome, Some(Outcome::Done { .. }));
            sender.send(outcome).ok(); // nobody may wait any more
            service.wait().ok(); // how it ended is in its log
            if serves {
                engines.keep_watched(&name);
            }
        })?;
        loop {
            let outcome = match receiver.recv_timeout(LOOK) {
                Err(RecvTimeoutError::Timeout) if should_continue() => continue,
                Err(RecvTimeoutError::Timeout) => {
                    self.end(&place.name)?;
                    let reason = "it was cancelled".to_owned();
                    return Ok(Outcome::Failed { reason, is_final: true });
                }
                received => received.ok().flatten(),
            };
            return Ok(outcome.unwrap_or_else(|| Outcome::Failed {
                reason: "the process that starts the engine was killed".to_owned(),
                is_final: false,
            }));
        }
    }

    /// Checks that the peer that asks for an agent has the key of the allocation.
    ///
    /// # Errors
    /// If it has not, or asks for no allocation with an engine on this node.
    pub(crate) fn prove(&self, line: &[u8], peer: &mut Connection) -> Result<AgentRequest, Error> {
        let asked = AgentRequest::read(line)?;
        if !is_name(&asked.name) || !is_same_node(&asked.node, &self.node) {
            return Err(Error::new("it asks for an agent of another node, or of no allocation"));
        }
        let (pools, problem) = self.pools();
        for (_, directory) in pools {
            if let Some(key) = directory.key_of(&asked.name)? {
                asked.answer(&key, peer)?;
                return Ok(asked);
            }
        }
        Err(problem.unwrap_or_else(|| is_not_here(&asked.name)))
    }

    /// The pools of this node that have an engine, and why one cannot be opened.
    fn pools(&self) -> (Vec<(&Pool, PoolDirectory)>, Option<Error>) {
        let is_here = |pool: &&Pool| {
            let mut nodes = pool.staging_nodes.iter();
            pool.engine.is_some() && nodes.any(|node| is_same_node(&node.name, &self.node))
        };
        let (mut opened, mut problem) = (Vec::new(), None);
        for pool in self.site.pools.iter().filter(is_here) {
            match PoolDirectory::of(pool) {
                Ok(directory) => opened.push((pool, directory)),
                Err(error) => problem = Some(error),
            }
        }
        (opened, problem)
    }

    /// Gives a connection whose peer has the key to an agent.
    ///
    /// # Errors
    /// If the allocation is being removed, or it has too many agents.
    pub(crate) fn serve_agent(
        self: &Arc<Self>,
        asked: &AgentRequest,
        connection: Connection,
    ) -> Result<(), Error> {
        let held = Held::take(self, &asked.name)?;
        let stdio = connection.into_stdio()?;
        let service = self.on_existing(&asked.name, |_, who| {
            self.run(&asked.name, &["agent".into()], who, stdio)
        })?;
        threads::spawn(move || {
            service.wait().ok(); // the peer notices its end
            drop(held);
        })?;
        Ok(())
    }

    /// Starts a process for an allocation, which is not removed meanwhile.
    fn on_existing(
        &self,
        name: &str,
        start: impl FnOnce(&Path, Credentials) -> Result<Service, Error>,
    ) -> Result<Service, Error> {
        let (directory, who) = self.found(name)?.ok_or_else(|| is_not_here(name))?;
        let removing = self.removing.lock();
        let found = files::status_of_name(&directory);
        if removing.contains(name) || !found.is_ok_and(|found| found.owner == who.user) {
            return Err(Error::new(format!("{name} is being removed")));
        }
        start(&directory, who)
    }

    /// The directory and the owner of an allocation of a pool with an engine.
    fn found(&self, name: &str) -> Result<Option<(PathBuf, Credentials)>, Error> {
        let (pools, problem) = self.pools();
        for (pool, directory) in pools {
            let Some((user, group)) = directory.user_and_group_of(name)? else { continue };
            let place = PoolAllocation {
                pool: pool.name.clone(),
                path: pool.path.display().to_string(),
                name: name.to_owned(),
                user,
                group,
                is_shared: false,
                access: pool.access(),
                engine: pool.engine.clone(),
            };
            return Ok(Some((place.directory(), credentials(&place, group)?)));
        }
        problem.map_or(Ok(None), Err)
    }

    /// Starts a process of the engine.
    fn run(
        &self,
        name: &str,
        words: &[OsString],
        who: Credentials,
        (input, output): (Stdio, Stdio),
    ) -> Result<Service, Error> {
        let mut command = command(THIS_PROGRAM);
        command.arg(OsStr::new(ENGINE)).args(words).stdin(input).stdout(output);
        command.env_clear().env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin").env("LC_ALL", "C");
        Ok(start_service_as_user(command, who, &self.cgroup(name)?)?)
    }

    fn cgroup(&self, name: &str) -> Result<KeptCgroup, Error> {
        let cgroups = self.cgroups.as_ref();
        let cgroups = cgroups.ok_or_else(|| Error::new("this node can start no engine"))?;
        Ok(cgroups.keep(name)?)
    }

    /// Ends all processes of an allocation's engine on this node. What they keep in memory is gone.
    ///
    /// # Errors
    /// If a process hangs in the kernel.
    pub(crate) fn end(&self, name: &str) -> Result<(), Error> {
        match &self.cgroups {
            Some(cgroups) => Ok(cgroups.end(name)?),
            None => Ok(()),
        }
    }

    /// The same for an allocation that is being removed: from now on no process is started for it.
    ///
    /// # Errors
    /// As [`Engines::end`].
    pub(crate) fn begin_removal(&self, name: &str) -> Result<(), Error> {
        self.removing.lock().insert(name.to_owned());
        self.end(name)
    }

    /// The directory of the allocation is gone, so none is found for it.
    pub(crate) fn end_removal(&self, name: &str) {
        self.removing.lock().remove(name);
    }
}

fn is_not_here(name: &str) -> Error {
    Error::new(format!("no allocation {name} with an engine is on this node"))
}

/// The outcome that a process prints in one line; none if it was killed first.
fn outcome_of(output: ChildStdout) -> Option<Outcome> {
    let mut line = String::new();
    BufReader::new(output.take(LINE_BYTES_MAX)).read_line(&mut line).ok()?;
    serde_json::from_str(&line).ok()
}

/// A place among the agents of an allocation.
struct Held {
    engines: Arc<Engines>,
    name: String,
}

impl Held {
    fn take(engines: &Arc<Engines>, name: &str) -> Result<Self, Error> {
        let mut agents = engines.agents.lock();
        let count = agents.entry(name.to_owned()).or_default();
        if *count == AGENTS_MAX {
            return Err(Error::new(format!("{name} has {AGENTS_MAX} agents on this node")));
        }
        *count += 1;
        Ok(Self { engines: Arc::clone(engines), name: name.to_owned() })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut agents = self.engines.agents.lock();
        if let Some(count) = agents.get_mut(&self.name) {
            *count -= 1;
        }
        agents.retain(|_, count| *count > 0);
    }
}
