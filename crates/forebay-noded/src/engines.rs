//! The processes of engines, which give the nodes of a job one namespace. They are the owner's, in one cgroup for each
//! allocation, and go on when this daemon ends: a later one finds them by the cgroup.

use std::collections::{HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use forebay_host::process::{
    Cgroups, Credentials, KeptCgroup, Service, command, sealed_input, start_service_as_user,
};
use forebay_host::tcp::{Closer, Connection};
use forebay_host::{cgroup, clock, threads};
use forebay_site::messages::{Outcome, Place};
use forebay_site::{Error, Site};
use parking_lot::Mutex;

use crate::engine_process::{ENGINE, PEER, Wanted};
use crate::owner::{THIS_PROGRAM, credentials};
use crate::pool::{PoolDirectory, is_name};

/// The begin of the name of the cgroup that has those of the engines. An epilog knows them by it.
const CGROUP: &str = "forebay-engines";
/// Agents of one allocation on this node at a time. One is enough, and a new one ends the one before it.
const AGENTS_MAX: usize = 32;
/// Bytes of the line with which the first process says that the engine serves.
const LINE_BYTES_MAX: u64 = 64 << 10;
/// How often a start looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// The engines of this node.
pub(crate) struct Engines {
    site: Site,
    /// None where this daemon can make no cgroup: no pool has an engine then.
    cgroups: Option<Cgroups>,
    /// What closes the connections of the agents of each allocation, and when each was made, the oldest first.
    agents: Mutex<HashMap<String, VecDeque<(Instant, Closer)>>>,
}

impl Engines {
    /// Finds what a former daemon of the node `name` left running.
    ///
    /// # Errors
    /// If a pool of this node has an engine, and no cgroup can be made for it.
    pub(crate) fn of(site: &Site, name: &str, is_needed: bool) -> Result<Self, Error> {
        let ours = cgroup::of_this_process();
        let opened = ours.and_then(|ours| Cgroups::open(&ours, &format!("{CGROUP}.{name}")));
        if let (Err(error), true) = (&opened, is_needed) {
            return Err(Error::new(format!("an engine needs a cgroup of version 2: {error}"))
                .with_hint("is Delegate=yes in the unit of forebay-noded?"));
        }
        Ok(Self { site: site.clone(), cgroups: opened.ok(), agents: Mutex::default() })
    }

    /// Starts the engine of an allocation on its nodes, of which this is the first, and waits until it serves, or
    /// `go_on` is false.
    ///
    /// # Errors
    /// If the first process cannot be started.
    pub(crate) fn start(
        &self,
        place: &Place,
        wanted: &Wanted,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Outcome, Error> {
        let input = serde_json::to_vec(wanted).map_err(|error| Error::new(error.to_string()))?;
        let stdio = (sealed_input(&input)?, Stdio::piped());
        let who = credentials(place, place.group)?;
        let mut service = self.run(&place.name, &["hold".into()], who, stdio)?;
        let (sender, receiver) = mpsc::channel();
        let output = service.take_output();
        threads::spawn(move || {
            let mut line = String::new();
            // What is no line of text is no outcome, which is told below.
            if let Some(output) = output {
                let mut output = std::io::BufReader::new(output.take(LINE_BYTES_MAX));
                std::io::BufRead::read_line(&mut output, &mut line).ok();
            }
            sender.send(line).ok(); // nobody may wait any more
            service.wait().ok(); // how it ended is in its log
        })?;
        loop {
            let line = match receiver.recv_timeout(LOOK) {
                Err(RecvTimeoutError::Timeout) if go_on() => continue,
                Err(RecvTimeoutError::Timeout) => {
                    self.end(&place.name)?;
                    return Ok(Outcome::Failed {
                        reason: "it was cancelled".into(),
                        is_final: true,
                    });
                }
                line => line.unwrap_or_default(),
            };
            return Ok(serde_json::from_str(&line).unwrap_or_else(|_| Outcome::Failed {
                reason: "the process that starts the engine was killed".to_owned(),
                is_final: false,
            }));
        }
    }

    /// Gives a connection to an agent of the allocation `name`, which lets nobody in without its key.
    ///
    /// # Errors
    /// If there is no such allocation with an engine, or it has too many agents.
    pub(crate) fn serve_agent(
        self: &Arc<Self>,
        name: &[u8],
        connection: Connection,
    ) -> Result<(), Error> {
        let name = std::str::from_utf8(name).ok().filter(|name| is_name(name));
        let name = name.ok_or_else(|| Error::new("it asks for an agent of no allocation"))?;
        let (place, who) = self.found(name)?;
        let held = Held::take(self, name, connection.closer()?)?;
        let words = ["agent".into(), place.into_os_string()];
        let service = self.run(name, &words, who, connection.into_stdio()?)?;
        threads::spawn(move || {
            service.wait().ok(); // the peer notices its end
            drop(held);
        })?;
        Ok(())
    }

    /// The directory and the owner of an allocation of a pool with an engine.
    fn found(&self, name: &str) -> Result<(std::path::PathBuf, Credentials), Error> {
        for pool in self.site.pools.iter().filter(|pool| pool.engine.is_some()) {
            let directory = PoolDirectory::of(pool)?;
            let Some((user, group)) = directory.user_and_group_of(name)? else { continue };
            let place = Place {
                pool: pool.name.clone(),
                path: pool.path.display().to_string(),
                name: name.to_owned(),
                user,
                group,
                is_shared: false,
                access: pool.access(),
                engine: pool.engine.clone(),
            };
            return Ok((place.directory(), credentials(&place, group)?));
        }
        Err(Error::new(format!("no allocation {name} with an engine is on this node")))
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
}

/// A place among the agents of an allocation.
struct Held {
    engines: Arc<Engines>,
    name: String,
    since: Instant,
}

impl Held {
    /// Where all places are taken, the connection is closed that has shown no key for the longest time. One that is
    /// older than a peer may take has shown it.
    fn take(engines: &Arc<Engines>, name: &str, closer: Closer) -> Result<Self, Error> {
        let since = clock::now();
        let mut agents = engines.agents.lock();
        let held = agents.entry(name.to_owned()).or_default();
        if held.len() >= AGENTS_MAX {
            let is_young = |(began, _): &&(Instant, Closer)| began.elapsed() < PEER;
            let Some((_, oldest)) = held.iter().find(is_young) else {
                return Err(Error::new(format!("{name} has {AGENTS_MAX} agents on this node")));
            };
            oldest.close();
        }
        held.push_back((since, closer));
        Ok(Self { engines: Arc::clone(engines), name: name.to_owned(), since })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut agents = self.engines.agents.lock();
        if let Some(held) = agents.get_mut(&self.name) {
            held.retain(|(since, _)| *since != self.since);
        }
        agents.retain(|_, held| !held.is_empty());
    }
}
