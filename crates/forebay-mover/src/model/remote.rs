//! What one node asks another to copy, and the answer. Plain data, as JSON; paths need not be UTF-8.
//! Assumes that both nodes run the same version of Forebay, which the cluster checks.
//! Has no bandwidth limit: with one, no other node copies.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_host::files::Status;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::item::Item;
use crate::model::options::{KeepChanged, Options, Verify, WriteMode};
use crate::model::reason::Reason;
use crate::model::state::State;

/// Copies on another node, which sees the same files.
pub trait RemoteCopier: Send + Sync {
    /// The node's name.
    fn node(&self) -> &str;
    /// Carries out a request there.
    ///
    /// # Errors
    /// If the node does not answer; the files are then copied here.
    fn copy(&self, request: &RemoteRequest) -> Result<RemoteAnswer, String>;
}

/// What another node copied in a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NodeShare {
    /// The node's name.
    pub node: String,
    /// Small files.
    pub files: u64,
    /// Bytes, also of pieces of large files.
    pub bytes: u64,
}

/// The nodes that help to copy.
#[derive(Clone, Default)]
pub struct RemoteCopiers(pub Vec<Arc<dyn RemoteCopier>>);

impl std::fmt::Debug for RemoteCopiers {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|copier| copier.node())).finish()
    }
}

/// A request to another node.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RemoteRequest {
    /// Read a small file, to find out whether the node sees the same directory.
    Look {
        /// The file.
        path: OsString,
    },
    /// Copy small files under temporary names, and sync them.
    Files(RemoteFiles),
    /// Copy a range of a large file into its partial file, and sync it.
    Piece(RemotePiece),
}

/// The answer of another node.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RemoteAnswer {
    /// The content of the file; none if it cannot be read.
    Looked(Option<Vec<u8>>),
    /// What became of each file, and notes with their number and an example.
    Files {
        /// In the order of the request.
        copied: Vec<Result<RemoteCopied, Reason>>,
        /// Problems of copied files.
        notes: Vec<(String, u64, OsString)>,
        /// Bytes that were copied.
        bytes: u64,
        /// Bytes that needed no copy.
        skipped_bytes: u64,
    },
    /// The checksum of the range, and the bytes that were copied.
    Piece(Result<(u64, u64), Reason>),
}

/// A small file that was copied.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RemoteCopied {
    /// Its temporary path; none: it has its final name.
    pub(crate) temporary: Option<OsString>,
    /// The checksum of what was copied now.
    pub(crate) checksum: Option<u64>,
    pub(crate) size_bytes: u64,
}

/// Small files to copy.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RemoteFiles {
    pub(crate) options: RemoteOptions,
    pub(crate) items: Vec<RemoteItem>,
}

/// A range of a large file to copy.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RemotePiece {
    pub(crate) options: RemoteOptions,
    pub(crate) item: RemoteItem,
    /// The partial file, which exists.
    pub(crate) temporary: OsString,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) is_sparse: bool,
}

/// The options that matter to another node.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RemoteOptions {
    durable: bool,
    past_page_cache: bool,
    is_in_place: bool,
    verify: Verify,
    checksum: bool,
    as_planned: bool,
    keep_changed: Option<(u64, bool)>,
    tag: String,
}

impl RemoteOptions {
    pub(crate) fn of(options: &Options) -> Self {
        Self {
            durable: options.durable,
            past_page_cache: options.past_page_cache,
            is_in_place: options.placing == WriteMode::InPlace,
            verify: options.verify,
            checksum: options.checksum,
            as_planned: options.as_planned,
            keep_changed: options.keep_changed.map(|keep| (keep.after_unix_ms, keep.newer_only)),
            tag: options.tag.clone(),
        }
    }

    pub(crate) fn to_options(&self) -> Options {
        let keep = |(after_unix_ms, newer_only)| KeepChanged { after_unix_ms, newer_only };
        Options {
            durable: self.durable,
            past_page_cache: self.past_page_cache,
            placing: if self.is_in_place { WriteMode::InPlace } else { WriteMode::AtomicRename },
            verify: self.verify,
            checksum: self.checksum,
            as_planned: self.as_planned,
            keep_changed: self.keep_changed.map(keep),
            ..Options::of(&self.tag)
        }
    }
}

/// A file or link to copy, and what tells its source from another file of that name.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RemoteItem {
    id: i64,
    directory: i64,
    kind: i64,
    source: OsString,
    target: OsString,
    size_bytes: u64,
    modified_ns: i64,
    is_begun: bool,
    checksum: Option<u64>,
    is_named: bool,
    filled: Option<OsString>,
    /// Whether its directory was empty when Forebay made it.
    pub(crate) is_fresh: bool,
    /// Inode, size and time of modification of the source.
    identity: (u64, u64, (i64, i64)),
}

impl RemoteItem {
    pub(crate) fn of(item: &Item, source: &Status, is_fresh: bool) -> Self {
        Self {
            id: item.id,
            directory: item.directory,
            kind: item.kind,
            source: item.source.clone().into(),
            target: item.target.clone().into(),
            size_bytes: item.size_bytes,
            modified_ns: item.modified_ns,
            is_begun: item.state > State::Copying,
            checksum: item.checksum,
            is_named: item.is_named,
            filled: item.filled.as_deref().map(|path| path.to_owned().into()),
            is_fresh,
            identity: identity(source),
        }
    }

    pub(crate) fn to_item(&self) -> Item {
        Item {
            id: self.id,
            directory: self.directory,
            kind: self.kind,
            source: PathBuf::from(&self.source),
            target: PathBuf::from(&self.target),
            size_bytes: self.size_bytes,
            modified_ns: self.modified_ns,
            state: if self.is_begun { State::Copied } else { State::Copying },
            checksum: self.checksum,
            is_named: self.is_named,
            filled: self.filled.as_ref().map(|path| Arc::from(Path::new(path))),
        }
    }

    /// Whether this is the source that the other node saw.
    pub(crate) fn is_same_source(&self, status: &Status) -> bool {
        identity(status) == self.identity
    }
}

fn identity(status: &Status) -> (u64, u64, (i64, i64)) {
    (status.inode, status.size_bytes, status.modified)
}
