//! Errors of allocations and views, with their remedies.

use std::path::PathBuf;

use indicatif::HumanBytes;

use crate::engine::{Coherence, Missing};

/// Why a job gets no allocation or no view.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error(transparent)]
    Host(#[from] forebay_host::Error),
    /// The store refused.
    #[error(transparent)]
    Store(#[from] forebay_store::Error),
    /// The files to stage in are larger than the allocation.
    #[error("stage-in needs {}, the allocation in {store} has {}", HumanBytes(*needed_bytes), HumanBytes(*capacity_bytes))]
    DoesNotFit {
        /// Bytes of all files to stage in.
        needed_bytes: u64,
        /// Capacity of the allocation.
        capacity_bytes: u64,
        /// The store.
        store: String,
    },
    /// The store has less than requested, and the user requires the full capacity.
    #[error("{} are asked for, and the store {store} can give {}", HumanBytes(*asked_bytes), HumanBytes(*usable_bytes))]
    LessThanAsked {
        /// Requested bytes.
        asked_bytes: u64,
        /// Available bytes.
        usable_bytes: u64,
        /// The store.
        store: String,
    },
    /// A request needs a private view of the file system, but the view is disabled.
    #[error("this needs a private view of the file system: {0}")]
    NoView(String),
    /// `--map` names a file, but works only with directories.
    #[error("--map: {} is no directory", .0.display())]
    MapOfFile(PathBuf),
    /// The path of a map does not exist and cannot be added in the view.
    #[error("--map {}: it does not exist: {error}", at.display())]
    MapTargetUnusable {
        /// The path in the script.
        at: PathBuf,
        /// Why it cannot be added.
        error: forebay_host::Error,
    },
    /// A map would hide a directory that the job needs.
    #[error("--map {}: it would hide {}, which the job needs", at.display(), hidden.display())]
    MapHides {
        /// The path in the script.
        at: PathBuf,
        /// The hidden directory.
        hidden: PathBuf,
    },
    /// The job has no node.
    #[error("the job has no nodes")]
    NoNodes,
    /// A node is named twice, perhaps under two names.
    #[error("{0} and {1} are the same node")]
    NodeTwice(String, String),
    /// The agent of a node could not be started.
    #[error("node {node} cannot be reached: {message}{}{printed}", if printed.is_empty() { "" } else { ": " })]
    NodeUnreachable {
        /// The node.
        node: String,
        /// What happened.
        message: String,
        /// What the launcher printed.
        printed: String,
    },
    /// Nodes run different versions.
    #[error("node {node} has Forebay {forebay}, this one {}", env!("CARGO_PKG_VERSION"))]
    NodeVersion {
        /// The node.
        node: String,
        /// Its version of Forebay.
        forebay: String,
    },
    /// A node refused a request.
    #[error("node {node}: {message}")]
    Node {
        /// The node.
        node: String,
        /// Why.
        message: String,
    },
    /// A node lacks what the engine needs.
    #[error("engine {engine}: node {node} lacks {}", missing.iter().map(|one| one.what.as_str()).collect::<Vec<_>>().join(", "))]
    EngineMissing {
        /// The engine.
        engine: String,
        /// The node.
        node: String,
        /// What it lacks, with remedies.
        missing: Vec<Missing>,
    },
    /// The engine promises less than the job requests.
    #[error("engine {engine} promises coherence {promised}, and the job asks for {asked}")]
    Coherence {
        /// The engine.
        engine: String,
        /// What it promises.
        promised: Coherence,
        /// What the job asks for.
        asked: Coherence,
    },
    /// The engine cannot keep the request.
    #[error("engine {engine}: {message}")]
    EngineRefuses {
        /// The engine.
        engine: String,
        /// Why.
        message: String,
    },
    /// A plan contradicts itself.
    #[error("the plan of the engine is wrong: {0}")]
    WrongPlan(String),
    /// A step of the engine failed.
    #[error("node {node}: {step} did not start: {message}{}{log}", if log.is_empty() { "" } else { "\n" })]
    StepFailed {
        /// The node.
        node: String,
        /// The step.
        step: String,
        /// Why.
        message: String,
        /// The end of its log.
        log: String,
    },
    /// A signal arrived while the engine started.
    #[error("interrupted while the engine started")]
    EngineInterrupted,
    /// The engine did not start, and not all of it could be removed.
    #[error("{error}; left behind: {}", left.join(", "))]
    EngineLeft {
        /// Why it did not start.
        error: Box<Error>,
        /// Leftovers, with the node.
        left: Vec<String>,
    },
    /// The system does not allow a private view of the file system.
    #[error("no private view of the file system: {0}")]
    View(forebay_host::Error),
}

impl Error {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Host(error) => return error.hint().map(str::to_owned),
            Self::Store(error) => return Some(error.hint()),
            Self::DoesNotFit { .. } => {
                "ask for more with capacity=, choose a larger store with --store DIR, or stage less"
            }
            Self::LessThanAsked { .. } => {
                "leave out --strict-capacity, or choose a larger store with --store DIR"
            }
            Self::NoNodes | Self::NodeTwice(..) => "name each node once: --nodes n1,n2",
            Self::NodeUnreachable { node, .. } => {
                return Some(format!(
                    "try it by hand: ssh {node} forebay --version; --launcher names another way to reach nodes"
                ));
            }
            Self::NodeVersion { .. } => {
                "install the same version of Forebay at the same path on each node"
            }
            Self::Node { .. } | Self::EngineRefuses { .. } => {
                "forebay doctor --engine NAME --nodes n1,n2 shows what the nodes offer"
            }
            Self::EngineMissing { missing, .. } => {
                let remedies: Vec<_> = missing.iter().map(Missing::remedy_or_bundle).collect();
                return Some(remedies.join("; "));
            }
            Self::Coherence { .. } => {
                "choose another engine with --engine, or accept less with --coherence close_to_open"
            }
            Self::WrongPlan(_) => "this is a fault of Forebay; please report it",
            Self::StepFailed { .. } => {
                "forebay doctor --engine NAME --nodes n1,n2 starts the engine alone"
            }
            Self::EngineInterrupted => return None,
            Self::EngineLeft { .. } => {
                "forebay clean removes the leftovers, once the nodes can be reached"
            }
            Self::NoView(_) | Self::View(_) => {
                "forebay doctor says what this machine allows; --map, memory:huge and /mnt/bb need it"
            }
            Self::MapOfFile(_) => "write --map PATH=DIR",
            Self::MapTargetUnusable { at, .. } => {
                return Some(format!("make it: mkdir -p '{}'", at.display()));
            }
            Self::MapHides { .. } => {
                "map a directory further down, or set TMPDIR, FOREBAY_STATE or --store elsewhere"
            }
        };
        Some(hint.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_view_hints_at_the_doctor_and_refused_store_at_another() {
        let refused = forebay_host::Error {
            operation: "enter",
            path: "/x".into(),
            source: std::io::ErrorKind::PermissionDenied.into(),
        };
        let view = Error::View(refused);
        assert!(view.hint().is_some_and(|hint| hint.starts_with("forebay doctor")));
        let store = Error::from(forebay_store::Error::NotADirectory("/x".into()));
        let hint = store.hint();
        assert_eq!(hint.as_deref(), Some("choose another store with --store DIR"));
    }
}
