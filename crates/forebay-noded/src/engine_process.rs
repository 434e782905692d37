//! The owner's side of an engine: `forebay __engine`. One process on the first node starts the engine and watches it; an
//! agent on each node does what that process asks; a relay carries the messages between both.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay_cluster::{AgentSpec, Session, SessionSpec, Watch, remove_left, restore_left};
use forebay_engine::engines::engine_named;
use forebay_engine::{Coherence, Layout, NodesUse};
use forebay_host::directory_lock::{DirectoryLock, LockMode};
use forebay_host::messages::Messages;
use forebay_host::process::Identity;
use forebay_host::tcp;
use forebay_host::{clock, files, system};
use forebay_site::Error;
use forebay_site::messages::{MESSAGE_BYTES_MAX, Outcome, engine_directory};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::engine_proof::{AgentRequest, PEER};
use crate::work::{DONE, JOURNALS, WorkError};

/// The word that starts these processes.
pub const ENGINE: &str = "__engine";
/// An agent ends itself and what it started after so long without a message, in seconds. That is never: a job may run
/// for weeks after a kill of the first process, and the removal of the allocation ends all.
const LOST_S_MAX: u32 = 365 * 24 * 3600;
/// How often the first process looks for messages.
const LOOK: Duration = Duration::from_secs(1);
/// How long a staging waits for the end of a process that it has killed.
const READABLE_MAX: Duration = Duration::from_secs(60);
/// How long a process that starts the engine waits for another one that does so already.
const START_MAX: Duration = Duration::from_secs(280);

/// The exit code of a process that finds nothing to watch.
pub(crate) const NOTHING: i32 = 2;

/// What the first process is to start.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct EngineSpec {
    /// The directory of the allocation, on each node.
    pub(crate) directory: PathBuf,
    /// The name of the allocation.
    pub(crate) name: String,
    /// The name of the engine.
    pub(crate) engine: String,
    /// The names and ports of the nodes. The first is this one.
    pub(crate) nodes: Vec<(String, u16)>,
    /// The size of the namespace.
    pub(crate) capacity_bytes: u64,
    /// Copies of the data.
    pub(crate) redundancy: u32,
    /// Its directory.
    pub(crate) namespace: String,
    /// How long a mount may not answer, and a node not be reached, in seconds.
    pub(crate) hang_s_max: u32,
}

/// What is recorded about an engine, in the directory of the allocation on the first node.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    /// The first process.
    holder: Identity,
    /// Whether the engine serves.
    is_ready: bool,
    /// Why operations on the namespace fail; none while they succeed.
    failure: Option<String>,
    /// The nodes that were lost, by index.
    #[serde(default)]
    lost: Vec<usize>,
    /// Why operations failed before the namespace was made readable: files may lack what was not synced then.
    #[serde(default)]
    interruption: Option<String>,
    wanted: EngineSpec,
    nodes: NodesUse,
}

/// Does what the words say, and returns the exit code.
pub fn engine(words: &[OsString]) -> i32 {
    let word = |at: usize| words.get(at).and_then(|word| word.to_str()).unwrap_or_default();
    let done = match word(0) {
        "hold" => return run_engine(),
        "resume" => return resume(Path::new(word(1))),
        "agent" => {
            return forebay_cluster::agent::serve(|_, _| Err("this agent has no tasks".to_owned()));
        }
        _ => relay((word(1), word(2)), Path::new(word(3))),
    };
    match done {
        Ok(()) => 0,
        Err(error) => {
            writeln!(std::io::stderr(), "{error}").ok(); // it may be closed
            1
        }
    }
}

fn record_in(directory: &Path) -> PathBuf {
    directory.join("engine.json")
}

/// Where the key of the nodes is.
pub(crate) fn key_in(directory: &Path) -> PathBuf {
    directory.join("engine.key")
}

/// Connects an agent of another node, or of this one, with standard input and output.
fn relay((node, port): (&str, &str), directory: &Path) -> Result<(), Error> {
    let mut peer = tcp::connect(&format!("{node}:{port}"), PEER)?;
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let key = files::read_to_string(&key_in(directory))?;
    AgentRequest::ask((&name, node, &key), &mut peer)?;
    Ok(peer.relay()?)
}

/// Starts the engine, says so in one line, and watches it until this process is killed.
fn run_engine() -> i32 {
    forebay_host::process::close_to_debuggers();
    let mut input = Vec::new();
    let read = std::io::stdin().take(2 * MESSAGE_BYTES_MAX as u64).read_to_end(&mut input);
    let wanted = read.map_err(|error| error.to_string()).and_then(|_| {
        serde_json::from_slice::<EngineSpec>(&input).map_err(|error| error.to_string())
    });
    let wanted = match wanted {
        Ok(wanted) => wanted,
        Err(error) => return report(&WorkError::from(Error::new(error)).outcome()),
    };
    let held = match started(wanted) {
        Ok(Some(held)) => held,
        Ok(None) => return report(&DONE), // another process holds it
        Err(failed) => return report(&failed.outcome()),
    };
    report(&DONE);
    held.watch()
}

/// Watches an engine whose first process has ended.
fn resume(directory: &Path) -> i32 {
    forebay_host::process::close_to_debuggers();
    let log = Log::of(directory);
    let resumed = || {
        let Some(lock) = DirectoryLock::take(directory, LockMode::Exclusive)? else {
            return Ok(Err(0)); // another process watches it, or makes it readable
        };
        match read(directory)? {
            Some(record) if record.is_ready => Held::resumed(record, lock).map(Ok),
            _ => Ok(Err(NOTHING)),
        }
    };
    match resumed() {
        Ok(Ok(held)) => {
            log.line("the engine is watched again");
            held.watch()
        }
        Ok(Err(code)) => code,
        Err(error) => {
            log.line(&error.to_string());
            1
        }
    }
}

/// Why an engine was not started. Hints of `forebay run` that name its options are left out: a site chooses none of them.
fn not_started(engine: &str, why: &forebay_cluster::Error) -> WorkError {
    use forebay_cluster::Error as Why;
    use forebay_engine::Error::LessThanAsked;
    let (is_final, hint) = match why {
        Why::NodeUnreachable { node, .. } => {
            (false, Some(format!("look at journalctl -u forebay-noded on {node}")))
        }
        Why::EngineLeft { .. } => (false, None), // the next start removes it
        // Another program may have taken a port, and a node may be slow.
        Why::Host(_) | Why::Node { .. } | Why::StepFailed { .. } => (false, why.hint()),
        Why::EngineMissing { missing, .. } => {
            let remedies: Vec<_> = missing.iter().map(|one| one.remedy.as_str()).collect();
            (true, Some(remedies.join("; ")))
        }
        Why::Engine(LessThanAsked { .. }) => {
            let hint = "ask for less, or the site lowers the capacity of the pool in site.toml";
            (true, Some(hint.to_owned()))
        }
        Why::NoNodes | Why::NodeTwice(..) | Why::Coherence { .. } => (true, None),
        _ => (true, why.hint()),
    };
    let text = match why {
        Why::EngineMissing { .. } | Why::EngineRefuses { .. } | Why::Coherence { .. } => {
            format!("the {why}") // it names the engine
        }
        _ => format!("the engine {engine}: {why}"),
    };
    WorkError { error: Error { hint, ..Error::new(text) }, is_final }
}

fn report(outcome: &Outcome) -> i32 {
    let line = serde_json::to_string(outcome).unwrap_or_default();
    let mut output = std::io::stdout();
    // A daemon that ended meanwhile is replaced by one that asks again.
    writeln!(output, "{line}").and_then(|()| output.flush()).ok();
    i32::from(!matches!(outcome, Outcome::Done { .. }))
}

/// An engine that this process watches.
struct Held {
    watch: Watch,
    record: Record,
    _lock: DirectoryLock,
}

/// None if another process holds the engine.
fn started(wanted: EngineSpec) -> Result<Option<Held>, WorkError> {
    let directory = wanted.directory.clone();
    let Some(lock) = locked(&directory)? else { return Ok(None) };
    match read(&directory)? {
        // A former call could not say so, and the job may run already.
        Some(record) if record.is_ready => return Ok(Some(Held::resumed(record, lock)?)),
        Some(record) => remove(&directory, &record.nodes)?,
        None => {}
    }
    Held::started(wanted, lock).map(Some)
}

impl EngineSpec {
    /// How the nodes are reached: through their daemons.
    fn agents(&self) -> Result<AgentSpec, Error> {
        let program = system::this_program()?.into_os_string();
        let command = |(node, port): &(String, u16)| {
            let words = [program.clone(), ENGINE.into(), "relay".into(), node.into()];
            let end = [port.to_string().into(), self.directory.clone().into()];
            words.into_iter().chain(end).collect()
        };
        Ok(AgentSpec {
            names: self.nodes.iter().map(|(name, _)| name.clone()).collect(),
            commands: self.nodes.iter().map(command).collect(),
            directory: engine_directory(&self.directory),
            lost_s_max: LOST_S_MAX,
        })
    }
}

impl Held {
    fn started(wanted: EngineSpec, lock: DirectoryLock) -> Result<Self, WorkError> {
        let directory = wanted.directory.as_path();
        let log = Log::of(directory);
        let engine = engine_named(&wanted.engine)
            .ok_or_else(|| Error::new(format!("there is no engine {}", wanted.engine)))?;
        let spec = SessionSpec {
            id: &wanted.name,
            engine: engine.as_ref(),
            engine_root: None,
            store: Some(directory),
            capacity_bytes: Some(wanted.capacity_bytes),
            strict_capacity: true,
            redundancy: wanted.redundancy,
            metadata_servers: None,
            layout: Layout::default(),
            coherence: Coherence::Strict,
            namespaces: vec![wanted.namespace.clone()],
            private: false,
            node_local: None,
            hang_s_max: wanted.hang_s_max,
            messages: &log,
        };
        let mut recorded = None;
        let holder = Identity::ours()?;
        let mut record = |nodes: &NodesUse| {
            let (wanted, nodes) = (wanted.clone(), nodes.clone());
            let record = Record {
                holder,
                is_ready: false,
                failure: None,
                lost: Vec::new(),
                interruption: None,
                wanted,
                nodes,
            };
            write(directory, &record)?;
            recorded = Some(record);
            Ok(())
        };
        let session = Session::start(&spec, wanted.agents()?, &mut record, &|| true);
        let session = session.map_err(|error| not_started(&wanted.engine, &error))?;
        let mut record = recorded.ok_or_else(|| Error::new("the engine has no nodes"))?;
        record.is_ready = true;
        write(directory, &record)?;
        Ok(Self { watch: session.into_watch(), record, _lock: lock })
    }

    fn resumed(mut record: Record, lock: DirectoryLock) -> Result<Self, Error> {
        record.holder = Identity::ours()?;
        write(&record.wanted.directory, &record)?;
        let nodes = (&record.nodes, record.wanted.hang_s_max);
        let found = (record.failure.clone(), record.lost.as_slice());
        let watch = Watch::resume(record.wanted.agents()?, nodes, found)
            .map_err(|error| Error::new(format!("the engine is not watched: {error}")))?;
        Ok(Self { watch, record, _lock: lock })
    }

    /// Writes down what the nodes say, until this process is killed.
    fn watch(mut self) -> i32 {
        let directory = self.record.wanted.directory.clone();
        let log = Log::of(&directory);
        loop {
            clock::sleep(LOOK);
            self.watch.take_messages().iter().for_each(|message| log.line(message));
            let found = (self.watch.failure(), self.watch.lost());
            if (&found.0, &found.1) != (&self.record.failure, &self.record.lost) {
                (self.record.failure, self.record.lost) = found;
                if let Err(error) = write(&directory, &self.record) {
                    log.line(&error.to_string());
                }
            }
        }
    }
}

/// The lock of the first process; none if another one has started the engine, for which this one waits.
fn locked(directory: &Path) -> Result<Option<DirectoryLock>, Error> {
    let deadline = clock::now() + START_MAX;
    loop {
        if let Some(lock) = DirectoryLock::take(directory, LockMode::Exclusive)? {
            return Ok(Some(lock));
        }
        if read(directory)?.is_some_and(|record| record.is_ready) {
            return Ok(None);
        }
        if clock::now() > deadline {
            return Err(Error::new("another process starts the engine, and does not end"));
        }
        clock::sleep(LOOK / 10);
    }
}

/// Removes what an earlier start left: the job has not begun.
fn remove(directory: &Path, nodes: &NodesUse) -> Result<(), Error> {
    let left = remove_left(nodes);
    if let Some(first) = left.first() {
        return Err(Error::new(format!("an engine that ended left this: {first}")));
    }
    for name in JOURNALS {
        files::remove_if_present(&directory.join(name))?;
    }
    Ok(files::remove_if_present(&record_in(directory))?)
}

fn read(directory: &Path) -> Result<Option<Record>, Error> {
    match files::read_json(&record_in(directory)) {
        Err(error) if error.is_not_found() => Ok(None),
        record => Ok(Some(record?)),
    }
}

fn write(directory: &Path, record: &Record) -> forebay_host::Result<()> {
    let path = record_in(directory);
    files::write_json(&path, &path.with_extension("fresh"), record)
}

/// Lets this node, the first, read the namespace, after the job has ended. Returns why operations failed before, if
/// they did: files may lack what was not synced then.
///
/// # Errors
/// Why it cannot be read.
pub(crate) fn make_readable(directory: &Path, namespace: &Path) -> Result<Option<String>, Error> {
    let deadline = clock::now() + READABLE_MAX;
    loop {
        let Some(record) = read(directory)? else {
            return Err(Error::new("the engine of the job was never started"));
        };
        if let Some(_lock) = DirectoryLock::take(directory, LockMode::Exclusive)? {
            let restored = restore_left(&record.nodes, LOST_S_MAX, &Log::of(directory));
            let ended = restored.map_err(Error::new)?.map(|servers| format!("{servers} ended"));
            let interruption = record.failure.or(record.interruption).or(ended);
            let record = Record { failure: None, interruption, ..record };
            write(directory, &record)?;
            return Ok(record.interruption);
        }
        if files::status(namespace).is_ok() {
            return Ok(record.interruption);
        }
        if clock::now() > deadline {
            return Err(Error::new(
                "the mount of the engine ended, and its first process does not",
            ));
        }
        record.holder.kill(); // its agents and those of this process would end each other
        clock::sleep(LOOK / 10);
    }
}

/// Why operations on the namespace failed; none if they did not.
pub(crate) fn failure(directory: &Path) -> Option<String> {
    read(directory).ok().flatten()?.failure
}

/// The log of an engine, in the directory of the allocation on the first node.
struct Log {
    path: PathBuf,
    writing: Mutex<()>,
}

impl Log {
    fn of(directory: &Path) -> Self {
        Self { path: directory.join("engine.log"), writing: Mutex::default() }
    }

    fn line(&self, text: &str) {
        let _writing = self.writing.lock();
        // A log that cannot be written stops no engine.
        if let Ok(mut file) = files::open_to_append(&self.path) {
            writeln!(file, "{} {text}", clock::unix_s()).ok();
        }
    }
}

impl Messages for Log {
    fn note(&self, text: &str) {
        self.line(text);
    }

    fn warning(&self, text: &str) {
        self.line(text);
    }

    fn explain(&self, text: &str) {
        self.line(text);
    }
}

#[cfg(test)]
mod tests {
    use forebay_engine::Missing;

    use super::*;

    #[test]
    fn what_a_node_lacks_has_a_remedy_without_options_that_a_site_does_not_have() {
        let absent = Missing {
            what: "ceph-mds".to_owned(),
            remedy: "install the package ceph-mds on n1".to_owned(),
            in_bundle: true,
        };
        let missing = forebay_cluster::Error::EngineMissing {
            engine: "ceph".to_owned(),
            node: "n1".to_owned(),
            missing: vec![absent],
        };
        let failed = not_started("ceph", &missing);
        assert!(failed.is_final);
        let reason = "the engine ceph: node n1 lacks ceph-mds; install the package ceph-mds on n1";
        assert_eq!(failed.error.to_string(), reason);
        assert!(missing.hint().expect("hint").ends_with("or name a bundle with --engine-root"));
    }
}
