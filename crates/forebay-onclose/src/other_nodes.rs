//! Files that processes of other nodes close. The kernel of a node reports only what its own processes do, so the
//! agent of each node watches its own mount, and this node asks the agents for what was closed. It reports directories
//! that one node makes to the others, which watch them, too.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use forebay_cluster::NodeHandle;
use forebay_host::close_watch::{
    CloseEvent, CloseWatcher, DiscoveredPaths, WatchHandle, is_closed,
};
use forebay_host::{clock, threads};
use parking_lot::{Condvar, Mutex};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How often a node is asked.
const INTERVAL: Duration = Duration::from_millis(250);
/// The time for a node to report what was closed.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// The time until all nodes have reported what was closed, in seconds. Later reports are not waited for.
const SYNC_S_MAX: u64 = 10;
/// Directories that nodes make in each other's directories need so many rounds at most.
const ROUNDS_MAX: usize = 4;

/// Asks a node what was closed there.
#[derive(Debug, Serialize, Deserialize)]
pub struct CloseRequest {
    /// One watch of a node has this name. It begins with the first request.
    watch: String,
    /// The directory trees.
    roots: Vec<OsString>,
    /// Directories that other nodes made.
    made: Vec<OsString>,
    /// Files of which to say whether a process of the node writes them.
    check: Vec<OsString>,
    /// Wait until everything that is closed now is reported.
    syncs: bool,
}

/// What was closed on a node.
#[derive(Debug, Serialize, Deserialize)]
pub struct CloseAnswer {
    /// Whether the watch began with this request: what was closed before is not reported.
    is_new: bool,
    closed: Vec<OsString>,
    /// Directories that were made.
    made: Vec<OsString>,
    /// Files in directories that other nodes made. Processes of other nodes may write them.
    found: Vec<OsString>,
    /// The checked files that a process of the node writes. It reports them when they are closed.
    open: Vec<OsString>,
}

/// The watches of this node, by name.
static WATCHES: Mutex<Option<HashMap<String, NodeWatch>>> = Mutex::new(None);

/// Answers a request of the first node.
///
/// # Errors
/// If a directory cannot be watched.
pub fn serve_closes(request: CloseRequest) -> Result<CloseAnswer, String> {
    let mut watches = WATCHES.lock();
    let watches = watches.get_or_insert_default();
    let is_new = !watches.contains_key(&request.watch);
    if is_new {
        let roots: Vec<_> = request.roots.into_iter().map(PathBuf::from).collect();
        watches.insert(request.watch.clone(), NodeWatch::begin(&roots)?);
    }
    let watch = watches.get(&request.watch).ok_or("the watch is gone")?;
    for directory in request.made {
        watch.handle.report(directory.into()).map_err(|error| error.to_string())?;
    }
    if request.syncs {
        watch.sync();
    }
    let closed = std::mem::take(&mut watch.seen.lock().closed);
    let found = watch.handle.take_found();
    let words = |paths: Vec<PathBuf>| paths.into_iter().map(Into::into).collect();
    let is_open = |path: &OsString| matches!(is_closed(Path::new(path)), Ok(None));
    Ok(CloseAnswer {
        is_new,
        closed: words(closed),
        made: words(found.directories),
        found: words(found.files),
        open: request.check.into_iter().filter(is_open).collect(),
    })
}

/// The watch of one node over its own mount.
struct NodeWatch {
    handle: WatchHandle,
    seen: Arc<Mutex<Seen>>,
    changed: Arc<Condvar>,
}

#[derive(Default)]
struct Seen {
    closed: Vec<PathBuf>,
    synced_to: u64,
    has_ended: bool,
}

impl NodeWatch {
    fn begin(roots: &[PathBuf]) -> Result<Self, String> {
        let roots: Vec<_> = roots.iter().map(PathBuf::as_path).collect();
        let mut watcher = CloseWatcher::watch(&roots).map_err(|error| error.to_string())?;
        let handle = watcher.handle();
        handle.take_found();
        let (seen, changed) = (Arc::new(Mutex::new(Seen::default())), Arc::new(Condvar::new()));
        let (of_thread, notifier) = (Arc::clone(&seen), Arc::clone(&changed));
        let started = threads::spawn(move || {
            loop {
                let event = watcher.wait();
                let mut seen = of_thread.lock();
                match event {
                    Ok(CloseEvent::Closed(closed)) => seen.closed.push(closed.path),
                    Ok(CloseEvent::Drained(ticket)) => seen.synced_to = ticket,
                    // The stage-out, or the last look of the first node, finds these files.
                    Ok(CloseEvent::Unseen(_) | CloseEvent::NoLease(_)) => {}
                    Ok(CloseEvent::End) | Err(_) => seen.has_ended = true,
                }
                notifier.notify_all();
                if seen.has_ended {
                    return;
                }
            }
        });
        started.map_err(|error| error.to_string())?;
        Ok(Self { handle, seen, changed })
    }

    /// Waits until everything that is closed now was seen.
    fn sync(&self) {
        let Ok(ticket) = self.handle.request_ticket() else { return };
        let behind = |seen: &mut Seen| seen.synced_to < ticket && !seen.has_ended;
        let limit = Duration::from_secs(SYNC_S_MAX);
        self.changed.wait_while_for(&mut self.seen.lock(), behind, limit);
    }
}

impl Drop for NodeWatch {
    fn drop(&mut self) {
        self.handle.stop().ok(); // it may have ended by itself
    }
}

/// What the threads of the nodes share.
#[derive(Default)]
struct Relay {
    /// Directories to report to each other node.
    made: Vec<Vec<PathBuf>>,
    /// Files that each other node is asked for.
    check: Vec<Vec<PathBuf>>,
    /// Found files, and how many nodes have not said yet that they do not write them.
    found: HashMap<PathBuf, usize>,
    /// How many directories and files were reported.
    reported: usize,
    /// The number of the wanted round, and of the last one of each node.
    wanted: u64,
    done: Vec<u64>,
    has_ended: bool,
}

impl Relay {
    /// Reports a new directory to all nodes except one.
    fn announce(&mut self, directory: &Path, except: Option<usize>) {
        self.reported += 1;
        for (node, made) in self.made.iter_mut().enumerate() {
            if Some(node) != except {
                made.push(directory.to_owned());
            }
        }
    }

    /// Asks all nodes whether they write a file.
    fn check(&mut self, path: PathBuf) {
        self.reported += 1;
        self.check.iter_mut().for_each(|check| check.push(path.clone()));
        self.found.insert(path, self.check.len());
    }

    /// Takes what this node found.
    fn add_own(&mut self, own: DiscoveredPaths) {
        own.directories.iter().for_each(|directory| self.announce(directory, None));
        own.files.into_iter().for_each(|path| self.check(path));
    }

    /// Takes the answer of a node about these files. Returns those that nobody writes.
    fn take_answer(&mut self, checked: &[PathBuf], open: &[OsString]) -> Vec<PathBuf> {
        for path in open {
            self.found.remove(Path::new(path));
        }
        let mut closed = Vec::new();
        for path in checked {
            if let Some(remaining) = self.found.get_mut(path) {
                *remaining -= 1;
                if *remaining == 0 {
                    self.found.remove(path);
                    closed.push(path.clone());
                }
            }
        }
        closed
    }
}

/// Receives files that were closed on other nodes, and directories that were made there.
type Sink = Box<dyn Fn(&Path) + Send + Sync>;

/// The watch over the other nodes of a job. It ends when it is dropped.
pub struct OtherNodes {
    own: Arc<NodeWatch>,
    relay: Arc<(Mutex<Relay>, Condvar)>,
}

/// What the thread of one node needs.
struct Asker {
    node: NodeHandle,
    number: usize,
    watch: String,
    roots: Vec<PathBuf>,
    own: Arc<NodeWatch>,
    relay: Arc<(Mutex<Relay>, Condvar)>,
    sink: Arc<Sink>,
}

impl OtherNodes {
    /// Begins to watch on all nodes. `sink` gets paths below the roots, which are the same on all nodes.
    ///
    /// # Errors
    /// If a node cannot watch.
    pub fn watch(
        nodes: Vec<NodeHandle>,
        watch: &str,
        roots: &[PathBuf],
        sink: Sink,
    ) -> Result<Self, String> {
        let own = Arc::new(NodeWatch::begin(roots)?);
        let relay = Relay {
            made: vec![Vec::new(); nodes.len()],
            check: vec![Vec::new(); nodes.len()],
            done: vec![0; nodes.len()],
            ..Relay::default()
        };
        let relay = Arc::new((Mutex::new(relay), Condvar::new()));
        let sink = Arc::new(sink);
        let all = Self { own: Arc::clone(&own), relay: Arc::clone(&relay) };
        for (number, node) in nodes.into_iter().enumerate() {
            let asker = Asker {
                node,
                number,
                watch: watch.to_owned(),
                roots: roots.to_vec(),
                own: Arc::clone(&own),
                relay: Arc::clone(&relay),
                sink: Arc::clone(&sink),
            };
            asker
                .ask(Vec::new(), Vec::new(), false)
                .map_err(|error| format!("node {}: {error}", asker.node.name()))?;
            threads::spawn(move || asker.run()).map_err(|error| error.to_string())?;
        }
        Ok(all)
    }

    /// Waits until what is closed on all nodes now was reported, or for [`SYNC_S_MAX`].
    pub fn sync(&self) {
        let until = clock::now() + Duration::from_secs(SYNC_S_MAX);
        for _ in 0..ROUNDS_MAX {
            self.own.sync();
            let (relay, changed) = &*self.relay;
            let mut relay = relay.lock();
            relay.add_own(self.own.handle.take_found());
            relay.wanted += 1;
            let (wanted, reported) = (relay.wanted, relay.reported);
            changed.notify_all();
            while relay.done.iter().any(|done| *done < wanted) {
                if changed.wait_until(&mut relay, until).timed_out() {
                    return;
                }
            }
            if relay.reported == reported {
                return;
            }
        }
    }
}

impl Drop for OtherNodes {
    fn drop(&mut self) {
        let (relay, changed) = &*self.relay;
        relay.lock().has_ended = true;
        changed.notify_all();
    }
}

impl Asker {
    fn run(self) {
        let mut has_answered = true;
        loop {
            let (made, check, wanted, syncs) = {
                let (relay, changed) = &*self.relay;
                let mut relay = relay.lock();
                let idle =
                    |relay: &mut Relay| !relay.has_ended && relay.wanted == relay.done[self.number];
                changed.wait_while_for(&mut relay, idle, INTERVAL);
                if relay.has_ended {
                    return;
                }
                relay.add_own(self.own.handle.take_found());
                let made = std::mem::take(&mut relay.made[self.number]);
                let check = std::mem::take(&mut relay.check[self.number]);
                (made, check, relay.wanted, relay.wanted > relay.done[self.number])
            };
            let answer = self.ask(made, check.clone(), syncs);
            if let Ok(answer) = &answer {
                self.report(answer, has_answered);
            }
            // A node that does not answer delays nothing.
            let open = answer.as_ref().map(|answer| answer.open.as_slice()).unwrap_or_default();
            let closed = self.relay.0.lock().take_answer(&check, open);
            closed.iter().for_each(|path| (self.sink)(path));
            has_answered = answer.is_ok();
            let (relay, changed) = &*self.relay;
            relay.lock().done[self.number] = wanted;
            changed.notify_all();
        }
    }

    fn ask(
        &self,
        made: Vec<PathBuf>,
        check: Vec<PathBuf>,
        syncs: bool,
    ) -> Result<CloseAnswer, String> {
        let text = |error: serde_json::Error| error.to_string();
        let request = CloseRequest {
            watch: self.watch.clone(),
            roots: self.roots.iter().map(Into::into).collect(),
            made: made.into_iter().map(Into::into).collect(),
            check: check.into_iter().map(Into::into).collect(),
            syncs,
        };
        let task = serde_json::to_value(NodeTask::Closes(request)).map_err(text)?;
        serde_json::from_value(self.node.ask(task, ANSWER_MAX)?).map_err(text)
    }

    /// Hands on what a node reported. After a gap, this node looks at everything.
    fn report(&self, answer: &CloseAnswer, has_answered: bool) {
        for directory in answer.made.iter().map(PathBuf::from) {
            self.relay.0.lock().announce(&directory, Some(self.number));
            self.own.handle.report(directory.clone()).ok(); // its watch may have ended
            (self.sink)(&directory);
        }
        let found = answer.found.iter().map(PathBuf::from);
        found.for_each(|path| self.relay.0.lock().check(path));
        answer.closed.iter().for_each(|path| (self.sink)(Path::new(path)));
        if answer.is_new || !has_answered {
            self.roots.iter().for_each(|root| drop(self.own.handle.report(root.clone())));
        }
    }
}

/// A task for the agent of a node.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeTask {
    /// Copy files.
    Copy(Value),
    /// Report closed files.
    Closes(CloseRequest),
}
