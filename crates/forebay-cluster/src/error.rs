//! Errors of a session with the nodes, with their remedies.

use forebay_engine::{Coherence, Missing};

/// Why the nodes of a job get no namespace.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error(transparent)]
    Host(#[from] forebay_host::Error),
    /// The allocation is refused.
    #[error(transparent)]
    Engine(#[from] forebay_engine::Error),
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
}

impl Error {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Host(error) => return error.hint().map(str::to_owned),
            Self::Engine(error) => return error.hint(),
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
        };
        Some(hint.to_owned())
    }
}
