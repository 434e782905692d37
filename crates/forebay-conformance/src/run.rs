//! The coordinator: runs the checks on nodes.
//! Assumes workers of the same version. Never judges an engine: the caller compares results with a promise.

use forebay_host::clock;

use crate::bytes::Bytes;
use crate::check::{Check, Scope};
use crate::checks::checks;
use crate::node::{Node, OperationError};
use crate::operation::{Answer, Operation};
use crate::report::{CheckResult, NodeFacts, Outcome, Report};
use crate::trial::{Failure, Trial, Verdict};

/// After so many checks without an answer the others are not run: each would wait for the limit.
const UNANSWERED_MAX: u32 = 3;

/// What to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// How often each check is repeated; those that work on much data are repeated less often.
    pub repetitions: u64,
    /// The names of the checks to run; all if there are none.
    pub only: Vec<String>,
    /// How long an operation may take.
    pub operation_s_max: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self { repetitions: 20, only: Vec::new(), operation_s_max: 30.0 }
    }
}

/// Why no check was run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No node was given.
    #[error("there is no node to check")]
    NoNode,
    /// There is no check of this name, or only one across nodes and one node.
    #[error("there is no check {0} for this number of nodes")]
    NoCheck(String),
    /// A node has another version.
    #[error("forebay is {version} on {node}, and {ours} here")]
    Version {
        /// The node.
        node: String,
        /// Its version.
        version: String,
        /// This version.
        ours: String,
    },
    /// A worker does not answer.
    #[error("no worker on {0}")]
    NoWorker(String),
    /// The directory cannot be used.
    #[error("cannot use {directory}: {reason}")]
    Directory {
        /// The directory.
        directory: String,
        /// Why.
        reason: String,
    },
}

impl Error {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoNode => "name a node with --on 'COMMAND', such as --on forebay",
            Self::NoCheck(_) => "forebay __conformance list prints all names",
            Self::Version { .. } => "install the same version on each node",
            Self::NoWorker(_) => "try the command by hand with: COMMAND __conformance worker",
            Self::Directory { .. } => "name an absolute path that each node sees and can write to",
        }
    }
}

/// Runs the checks below `directory`, an absolute path that each node sees; those across nodes only if there are
/// several. Calls `seen` with each result, and ends when it returns false.
///
/// # Errors
/// If no check could be run.
pub fn run(
    nodes: &mut Vec<Node>,
    directory: &[u8],
    options: &Options,
    seen: &mut dyn FnMut(&CheckResult) -> bool,
) -> Result<Report, Error> {
    let began = clock::now();
    let chosen = choose(nodes.len(), &options.only)?;
    let mut facts = Vec::new();
    for node in nodes.iter_mut() {
        node.set_limit(options.operation_s_max);
        facts.push(greet(node)?);
    }
    let mut coordinator =
        Coordinator { base: base(nodes, directory)?, nodes, options, unanswered: 0 };
    let mut results = Vec::new();
    for (scope, check) in chosen {
        let result = coordinator.repeat(scope, check);
        let goes_on = seen(&result);
        results.push(result);
        if !goes_on {
            break;
        }
    }
    let left = coordinator.remove_base();
    Ok(Report {
        directory: String::from_utf8_lossy(directory).into_owned(),
        nodes: facts,
        checks: results,
        left,
        wall_s: began.elapsed().as_secs_f64(),
    })
}

fn choose(nodes: usize, only: &[String]) -> Result<Vec<(Scope, &'static Check)>, Error> {
    let scopes = match nodes {
        0 => return Err(Error::NoNode),
        1 => &[Scope::OneNode][..],
        _ => &[Scope::OneNode, Scope::AcrossNodes][..],
    };
    let all = scopes.iter().flat_map(|scope| checks(*scope).map(|check| (*scope, check)));
    let all: Vec<_> = all.collect();
    if let Some(name) = only.iter().find(|name| !all.iter().any(|(_, check)| check.name == **name))
    {
        return Err(Error::NoCheck(name.clone()));
    }
    let is_chosen = |check: &Check| only.is_empty() || only.iter().any(|name| name == check.name);
    Ok(all.into_iter().filter(|(_, check)| is_chosen(check)).collect())
}

fn greet(node: &mut Node) -> Result<NodeFacts, Error> {
    match node.call(&Operation::Hello) {
        Ok(Answer::Facts { version, host, .. }) => {
            let ours = env!("CARGO_PKG_VERSION").to_owned();
            if version == ours {
                return Ok(NodeFacts { name: node.name.clone(), host, version });
            }
            Err(Error::Version { node: node.name.clone(), version, ours })
        }
        Ok(other) => Err(Error::NoWorker(format!("{}: it answers {other:?}", node.name))),
        Err(failed) => Err(Error::NoWorker(explain(failed))),
    }
}

fn explain(failed: OperationError) -> String {
    match failed {
        OperationError::Errno { errno, on } => format!("{on}: {errno}"),
        OperationError::NoAnswer { node, operation } => {
            format!("{node}: {operation} has no answer")
        }
        OperationError::Lost(reason) => reason,
    }
}

/// Creates the directory of this run, and makes sure that each node sees it.
fn base(nodes: &mut [Node], directory: &[u8]) -> Result<Vec<u8>, Error> {
    let refused = |reason: String| {
        let directory = String::from_utf8_lossy(directory).into_owned();
        Error::Directory { directory, reason }
    };
    if !directory.starts_with(b"/") {
        return Err(refused("it is not an absolute path".to_owned()));
    }
    let name =
        format!("/forebay-conformance-{}-{}", std::process::id(), clock::unix_milliseconds());
    let base = [directory, name.as_bytes()].concat();
    let make = Operation::MakeDirectory { path: Bytes(base.clone()), mode: 0o755 };
    nodes[0].call(&make).map_err(|failed| refused(explain(failed)))?;
    for node in nodes.iter_mut() {
        let seen = node.call(&Operation::Stat { path: Bytes(base.clone()) });
        seen.map_err(|failed| {
            refused(format!("a new directory is not seen: {}", explain(failed)))
        })?;
    }
    Ok(base)
}

struct Coordinator<'a> {
    base: Vec<u8>,
    nodes: &'a mut Vec<Node>,
    options: &'a Options,
    unanswered: u32,
}

impl Coordinator<'_> {
    fn repeat(&mut self, scope: Scope, check: &'static Check) -> CheckResult {
        let began = clock::now();
        let asked = check.repetitions(self.options.repetitions);
        let mut result = CheckResult {
            name: check.name,
            proves: check.proves,
            scope,
            repetitions: 0,
            outcome: Outcome::Kept,
            wall_s: 0.0,
        };
        let (mut broken, mut first) = (0, None);
        while result.repetitions < asked && result.outcome == Outcome::Kept {
            if self.unanswered >= UNANSWERED_MAX {
                result.outcome = Outcome::NotRun;
                break;
            }
            let verdict = self.once(check, result.repetitions);
            result.repetitions += 1;
            match verdict {
                Ok(()) => {}
                Err(Failure::Broken(reason)) => {
                    broken += 1;
                    first.get_or_insert(reason);
                }
                Err(failure) => result.outcome = self.interrupted(failure),
            }
        }
        if let Some(reason) = first {
            result.outcome = Outcome::Broken { broken, reason };
        }
        result.wall_s = began.elapsed().as_secs_f64();
        result
    }

    fn interrupted(&mut self, failure: Failure) -> Outcome {
        match failure {
            Failure::NotSupported(errno) => Outcome::NotSupported { errno },
            Failure::NoAnswer(reason) => {
                self.unanswered += 1;
                let operation_s_max = self.options.operation_s_max.to_string();
                Outcome::NoAnswer { operation_s_max, reason }
            }
            Failure::Lost(reason) | Failure::Broken(reason) | Failure::Succeeded(reason) => {
                self.unanswered += 1;
                Outcome::Lost { reason }
            }
        }
    }

    /// One repetition in a directory of its own.
    fn once(&mut self, check: &Check, number: u64) -> Verdict {
        let directory = [&self.base[..], format!("/{}-{number}", check.name).as_bytes()].concat();
        let mut trial = Trial { nodes: self.nodes, number };
        let path = Bytes(directory.clone());
        trial.one().call(Operation::MakeDirectory { path: path.clone(), mode: 0o755 })?;
        for node in trial.all() {
            trial.on(node).call(Operation::Begin { path: path.clone() })?;
        }
        let verdict = match (check.body)(&mut trial) {
            Err(Failure::Succeeded(wrong)) => {
                Err(Failure::Broken(format!("{} {wrong}", trial.last())))
            }
            verdict => verdict,
        };
        if matches!(verdict, Err(Failure::NoAnswer(_) | Failure::Lost(_))) {
            return verdict; // the next operation might wait for the limit, too
        }
        for node in trial.all() {
            trial.on(node).call(Operation::Begin { path: Bytes(self.base.clone()) })?;
        }
        // What stays, a file system that is not coherent may have hidden; the end of the run tries again.
        match trial.one().call(Operation::RemoveTree { path }) {
            Ok(_) | Err(OperationError::Errno { .. }) => verdict,
            Err(failed) => Err(failed.into()),
        }
    }

    /// Removes the directory of this run from any node that can. Returns it if none can.
    fn remove_base(&mut self) -> Option<String> {
        let path = Bytes(self.base.clone());
        for node in self.nodes.iter_mut() {
            node.call(&Operation::Begin { path: path.clone() }).ok(); // the removal tells
        }
        let gone = self.nodes.iter_mut().any(|node| {
            match node.call(&Operation::RemoveTree { path: path.clone() }) {
                Ok(_) => true,
                Err(OperationError::Errno { errno, .. }) => errno == "ENOENT",
                Err(_) => false,
            }
        });
        (!gone).then(|| String::from_utf8_lossy(&self.base).into_owned())
    }
}
