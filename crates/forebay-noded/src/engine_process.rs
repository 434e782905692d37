//! The owner's side of an engine: `forebay __engine`. One process on the first node starts the engine and watches it; an
//! agent on each node does what that process asks; a relay carries the messages between both.
//!
//! An agent carries out commands, so it shows nobody more than a random text before the other side has proved that it
//! has the key. Each node got the key from the control host, in a message that is encrypted.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay_engine::engines::engine_named;
use forebay_engine::{
    Coherence, Layout, NodesUse, Reach, Session, SessionSpec, remove_left, restore_left,
};
use forebay_host::directory_lock::{DirectoryLock, LockMode};
use forebay_host::messages::Messages;
use forebay_host::process::Identity;
use forebay_host::tcp::{self, Connection};
use forebay_host::{clock, files, system};
use forebay_site::Error;
use forebay_site::messages::{MESSAGE_BYTES_MAX, Outcome, engine_directory};
use hmac::{Hmac, Mac};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::work::{DONE, JOURNALS};

/// The word that starts these processes.
pub const ENGINE: &str = "__engine";
/// An agent ends itself and what it started after so long without a message, in seconds. That is never: a job may run
/// for weeks after a kill of the first process, and the removal of the allocation ends all.
const LOST_S_MAX: u32 = 365 * 24 * 3600;
/// How often the first process looks for messages.
const LOOK: Duration = Duration::from_secs(1);
/// How long the peer of a connection may take to answer.
pub(crate) const PEER: Duration = Duration::from_secs(10);
/// Bytes of a proof, and of a random text.
const LINE_BYTES_MAX: usize = 256;
/// What an agent says when it has seen the proof.
const ACCEPTED: &[u8] = b"accepted";
/// How long a process that starts the engine waits for another one that does so already.
const START_MAX: Duration = Duration::from_secs(280);

/// What the first process is to start.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Wanted {
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
    nodes: NodesUse,
}

/// Does what the words say, and returns the exit code.
pub fn engine(words: &[OsString]) -> i32 {
    let word = |at: usize| words.get(at).and_then(|word| word.to_str()).unwrap_or_default();
    let done = match word(0) {
        "hold" => return hold(),
        "agent" => return agent(Path::new(word(1))),
        _ => relay(&format!("{}:{}", word(1), word(2)), Path::new(word(3))),
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

/// The key, from a file that only the owner reads.
fn keyed(directory: &Path) -> Result<Hmac<Sha256>, Error> {
    let key = files::read_to_string(&key_in(directory))?;
    Hmac::new_from_slice(key.trim().as_bytes()).map_err(|error| Error::new(error.to_string()))
}

/// Connects an agent of another node, or of this one, with standard input and output.
fn relay(address: &str, directory: &Path) -> Result<(), Error> {
    let mut connection = tcp::connect(address, PEER)?;
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    connection.send(format!("ENGINE {name}").as_bytes(), PEER)?;
    let text = connection.receive(LINE_BYTES_MAX, PEER)?;
    let proof = keyed(directory)?.chain_update(text).finalize().into_bytes();
    connection.send(hex::encode(proof).as_bytes(), PEER)?;
    if connection.receive(LINE_BYTES_MAX, PEER)? != ACCEPTED {
        return Err(Error::new(format!("{address} does not accept the key")));
    }
    Ok(connection.relay()?)
}

/// Serves whoever has the key, through standard input and output.
fn agent(directory: &Path) -> i32 {
    if let Err(error) = accept(directory) {
        writeln!(std::io::stderr(), "{error}").ok(); // it may be closed
        return 1;
    }
    forebay_engine::agent::serve(|_, _| Err("this agent has no tasks".to_owned()))
}

fn accept(directory: &Path) -> Result<(), Error> {
    let mut peer = Connection::of_standard_input()?;
    let text = system::random_text::<16>()?;
    peer.send(text.as_bytes(), PEER)?;
    let proof = hex::decode(peer.receive(LINE_BYTES_MAX, PEER)?).unwrap_or_default();
    let refused = |_| Error::new(format!("{} does not have the key", peer.peer()));
    keyed(directory)?.chain_update(&text).verify_slice(&proof).map_err(refused)?;
    peer.send(ACCEPTED, PEER)?;
    peer.into_stdio()?; // the same connection: waits of the agent have no end
    Ok(())
}

/// Starts the engine, says so in one line, and watches it until this process is killed.
fn hold() -> i32 {
    let mut input = Vec::new();
    let read = std::io::stdin().take(2 * MESSAGE_BYTES_MAX as u64).read_to_end(&mut input);
    let wanted = read
        .map_err(|error| error.to_string())
        .and_then(|_| serde_json::from_slice::<Wanted>(&input).map_err(|error| error.to_string()));
    let wanted = match wanted {
        Ok(wanted) => wanted,
        Err(error) => return report(&failed(&Error::new(error))),
    };
    let (session, record, _lock) = match start(&wanted) {
        Ok(Some(started)) => started,
        Ok(None) => return report(&DONE), // another process holds it
        Err(error) => return report(&failed(&error)),
    };
    report(&DONE);
    watch(&session, record, &Log::of(&wanted.directory), &wanted.directory)
}

fn failed(error: &Error) -> Outcome {
    Outcome::Failed { reason: error.to_string(), is_final: true }
}

fn report(outcome: &Outcome) -> i32 {
    let line = serde_json::to_string(outcome).unwrap_or_default();
    let mut output = std::io::stdout();
    // A daemon that ended meanwhile is replaced by one that asks again.
    writeln!(output, "{line}").and_then(|()| output.flush()).ok();
    i32::from(!matches!(outcome, Outcome::Done { .. }))
}

/// None if another process holds the engine.
fn start(wanted: &Wanted) -> Result<Option<(Session, Record, DirectoryLock)>, Error> {
    let directory = wanted.directory.as_path();
    let Some(lock) = locked(directory)? else { return Ok(None) };
    let log = Log::of(directory);
    remove_earlier(directory)?;
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
    let program = system::this_program()?.into_os_string();
    let command = |(node, port): &(String, u16)| {
        let words = [program.clone(), ENGINE.into(), "relay".into(), node.into()];
        let end = [port.to_string().into(), directory.into()];
        words.into_iter().chain(end).collect()
    };
    let reach = Reach {
        names: wanted.nodes.iter().map(|(name, _)| name.clone()).collect(),
        commands: wanted.nodes.iter().map(command).collect(),
        directory: engine_directory(directory),
        lost_s_max: LOST_S_MAX,
    };
    let mut recorded = None;
    let holder = Identity::ours()?;
    let mut record = |nodes: &NodesUse| {
        let record = Record { holder, is_ready: false, failure: None, nodes: nodes.clone() };
        write(directory, &record)?;
        recorded = Some(record);
        Ok(())
    };
    let session = Session::start(&spec, reach, &mut record, &|| true).map_err(|error| Error {
        hint: error.hint(),
        ..Error::new(format!("the engine {}: {error}", wanted.engine))
    })?;
    let mut record = recorded.ok_or_else(|| Error::new("the engine has no nodes"))?;
    record.is_ready = true;
    write(directory, &record)?;
    Ok(Some((session, record, lock)))
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
fn remove_earlier(directory: &Path) -> Result<(), Error> {
    let Some(record) = read(directory)? else { return Ok(()) };
    let left = remove_left(&record.nodes);
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

/// Writes down what the session says.
fn watch(session: &Session, mut record: Record, log: &Log, directory: &Path) -> i32 {
    loop {
        clock::sleep(LOOK);
        session.take_messages().iter().for_each(|message| log.line(message));
        let failure = session.failure();
        if failure != record.failure {
            record.failure = failure;
            if let Err(error) = write(directory, &record) {
                log.line(&error.to_string());
            }
        }
    }
}

/// Lets this node, the first, read the namespace, after the job has ended.
///
/// # Errors
/// Why it cannot be read.
pub(crate) fn make_readable(directory: &Path, namespace: &Path) -> Result<(), Error> {
    let Some(record) = read(directory)? else {
        return Err(Error::new("the engine of the job was never started"));
    };
    let is_held = DirectoryLock::take(directory, LockMode::Exclusive)?.is_none();
    if is_held && files::status(namespace).is_ok() {
        return Ok(());
    }
    record.holder.kill(); // its agents and those of this process would end each other
    restore_left(&record.nodes, &Log::of(directory)).map_err(Error::new)
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
