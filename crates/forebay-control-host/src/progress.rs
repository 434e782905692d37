//! How far stagings are, for those who ask while they run: one small file for each, next to the state. It is for display
//! only, so it is neither synced nor part of a transaction.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use forebay_directive::Direction;
use forebay_host::{clock, files};
use serde::{Deserialize, Serialize};

use crate::Session;
use crate::nodes::new_attempt;
use forebay_site::messages::Progress;
use forebay_site::{Error, Site};

const DIRECTORY: &str = "progress";
/// The file is written so often at most.
const INTERVAL: Duration = Duration::from_secs(1);

/// A staging, as the call that waits for it sees it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Staging {
    /// Into the allocation or out of it.
    pub(crate) direction: Direction,
    /// When the call began.
    pub(crate) since_unix_s: u64,
    /// When this was written.
    pub(crate) seen_unix_s: u64,
    /// Nodes of the job that have no room for their part of the allocation yet.
    pub(crate) full_nodes: Vec<String>,
    /// The nodes that have not completed it.
    pub(crate) nodes: Vec<NodeProgress>,
}

/// How far a node is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct NodeProgress {
    /// The name of the node.
    pub(crate) node: String,
    /// What the node said last.
    pub(crate) progress: Option<Progress>,
    /// The attempt that is asked for.
    pub(crate) attempt: String,
    /// How often it has failed.
    pub(crate) failures: u64,
    /// Since when it fails.
    failing_since_unix_s: Option<u64>,
    /// When it is tried again after a failure.
    next_try_unix_s: Option<u64>,
    /// Since when the node does not answer.
    silent_since_unix_s: Option<u64>,
}

impl NodeProgress {
    pub(crate) fn new(node: &str) -> Result<Self, Error> {
        Ok(Self {
            node: node.to_owned(),
            progress: None,
            attempt: new_attempt()?,
            failures: 0,
            failing_since_unix_s: None,
            next_try_unix_s: None,
            silent_since_unix_s: None,
        })
    }

    /// The node has answered.
    pub(crate) fn answered(&mut self, progress: Option<Progress>) {
        self.progress = progress;
        (self.silent_since_unix_s, self.next_try_unix_s) = (None, None);
    }

    /// It has failed. Returns for how long it fails.
    pub(crate) fn failed(&mut self) -> Duration {
        since(*self.failing_since_unix_s.get_or_insert_with(clock::unix_s))
    }

    /// It is tried again after this time.
    pub(crate) fn try_again_after(&mut self, wait: Duration) -> Result<(), Error> {
        self.failures += 1;
        self.attempt = new_attempt()?;
        self.next_try_unix_s = Some(clock::unix_s() + wait.as_secs());
        Ok(())
    }

    /// The node does not answer. Returns for how long.
    pub(crate) fn note_silence(&mut self) -> Duration {
        since(*self.silent_since_unix_s.get_or_insert_with(clock::unix_s))
    }

    /// How long it is too early to try again.
    pub(crate) fn wait(&self) -> Duration {
        Duration::from_secs(self.next_try_unix_s.unwrap_or(0).saturating_sub(clock::unix_s()))
    }
}

fn since(unix_s: u64) -> Duration {
    Duration::from_secs(clock::unix_s().saturating_sub(unix_s))
}

/// Writes the file while a call waits for a staging, and removes it at the end.
pub(crate) struct ProgressFile {
    path: PathBuf,
    pub(crate) staging: Staging,
    written: Option<Instant>,
    is_kept: bool,
}

impl ProgressFile {
    /// With `goes_on`, what the call before has left.
    pub(crate) fn of(site: &Site, session: &Session, direction: Direction, goes_on: bool) -> Self {
        let path = path_of(site, session.id);
        let left = of(site, session.id).filter(|left| goes_on && left.direction == direction);
        let now = clock::unix_s();
        let (full_nodes, nodes) = (Vec::new(), Vec::new());
        let new = Staging { direction, since_unix_s: now, seen_unix_s: now, full_nodes, nodes };
        Self { path, staging: left.unwrap_or(new), written: None, is_kept: false }
    }

    /// Writes how far the nodes are, unless it was written just now. With `is_kept`, for the next call, too.
    pub(crate) fn show(&mut self, nodes: impl Iterator<Item = NodeProgress>, is_kept: bool) {
        self.is_kept = is_kept;
        if !is_kept && self.written.is_some_and(|written| written.elapsed() < INTERVAL) {
            return;
        }
        self.staging.nodes = nodes.collect();
        self.staging.seen_unix_s = clock::unix_s();
        self.written = Some(clock::now());
        // The work does not depend on it, and the disk may be full.
        self.write().ok();
    }

    /// How far the call before left a node.
    pub(crate) fn node_progress(&self, node: &str) -> Result<NodeProgress, Error> {
        let left = self.staging.nodes.iter().find(|one| one.node == node).cloned();
        left.map_or_else(|| NodeProgress::new(node), Ok)
    }

    fn write(&self) -> Result<(), Error> {
        if let Some(directory) = self.path.parent() {
            files::make_directories(directory, 0o700)?;
        }
        let fresh = self.path.with_extension(forebay_host::system::process_id().to_string());
        Ok(files::write_json(&self.path, &fresh, &self.staging)?)
    }
}

impl Drop for ProgressFile {
    fn drop(&mut self) {
        if !self.is_kept {
            files::remove_if_present(&self.path).ok(); // it is for display
        }
    }
}

/// What is known of the staging of an allocation. A call that was killed leaves it behind.
pub(crate) fn of(site: &Site, id: u64) -> Option<Staging> {
    files::read_json(&path_of(site, id)).ok()
}

/// Removes what a call left that was killed.
pub(crate) fn forget(site: &Site, id: u64) {
    files::remove_if_present(&path_of(site, id)).ok(); // it is for display
}

fn path_of(site: &Site, id: u64) -> PathBuf {
    site.state.join(DIRECTORY).join(id.to_string())
}
