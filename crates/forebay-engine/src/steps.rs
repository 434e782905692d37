//! The steps of an engine's plan: files to write and processes to start on the nodes. Plain data, which
//! the agent of a node receives. Never carried out here.

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What a process is for. A plan stops mounts first, then servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Shows the namespace on a node.
    Mount,
    /// Serves data or names.
    Server,
    /// Watches the namespace. Nothing depends on it.
    Watch,
    /// Ends by itself with status 0.
    Once,
}

/// How a step is known to be ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ready {
    /// It accepts connections at this address.
    Accepts(SocketAddr),
    /// A file system is mounted here.
    Mounted(PathBuf),
    /// It ended with status 0.
    Ended,
    /// It runs; later steps find out whether it serves.
    Started,
}

/// How a step is stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// SIGTERM, then SIGKILL.
    Signal,
    /// Detach the mount, then end its process.
    Unmount(PathBuf),
    /// Run a command that undoes the step.
    Command(Vec<String>),
    /// Nothing is left of it.
    Nothing,
}

/// A file to write before the process starts. Only its owner can read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedFile {
    /// The path.
    pub path: PathBuf,
    /// The content.
    pub text: String,
}

/// One step on one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineStep {
    /// The name of the step, unique in the plan: `n1.storage`.
    pub id: String,
    /// The index of the node.
    pub node: usize,
    /// What its process is for.
    pub role: Role,
    /// Directories to make, with mode 0700. Those that exist are kept.
    pub directories: Vec<PathBuf>,
    /// Files to write, with mode 0600.
    pub files: Vec<PlannedFile>,
    /// Program and arguments; empty: the step is its files.
    pub argv: Vec<String>,
    /// Variables of the process, besides those of the agent.
    pub environment: BTreeMap<String, String>,
    /// How it is known to be ready.
    pub ready: Ready,
    /// The time until it is ready, in seconds.
    pub ready_s_max: u32,
    /// How it is stopped.
    pub stop: Stop,
    /// Steps that are ready before it starts.
    pub after: Vec<String>,
    /// Where its process keeps data of the job; none if it keeps none.
    #[serde(default)]
    pub keeps: Option<DataLocation>,
    /// What to do on its node when its process died, so that nobody waits for that one.
    #[serde(default)]
    pub fence: Option<Box<EngineStep>>,
}

/// Where a server keeps data of the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataLocation {
    /// In its memory.
    Memory,
    /// In files below this directory.
    Files(PathBuf),
}

/// Servers that replace each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerGroup {
    /// The node and the step of each.
    pub servers: Vec<(usize, String)>,
    /// How many of them may end while the others serve all data and names.
    pub losses_max: usize,
    /// Carried out once when the first of them is missing and the others serve.
    #[serde(default)]
    pub after_loss: Option<EngineStep>,
}

impl ServerGroup {
    /// How many are missing.
    fn missing(&self, gone: &MissingServers) -> usize {
        let is_missing = |(node, step): &&(usize, String)| {
            (gone.ended.contains(step) || gone.lost.contains(node)) && !gone.given_up.contains(step)
        };
        self.servers.iter().filter(is_missing).count()
    }

    /// What is to be carried out now, unless it was.
    pub fn due(&self, gone: &MissingServers) -> Option<&EngineStep> {
        let missing = self.missing(gone);
        self.after_loss.as_ref().filter(|_| missing > 0 && missing <= self.losses_max)
    }
}

/// What is not there any more.
#[derive(Debug, Clone, Default)]
pub struct MissingServers {
    /// The servers that ended, by step.
    pub ended: HashSet<String>,
    /// The nodes that were lost, by index.
    pub lost: HashSet<usize>,
    /// Servers whose data were given up: nobody waits for them.
    pub given_up: HashSet<String>,
}

/// Whether the servers that are left serve all data and names that were not given up.
pub fn serve_without(groups: &[ServerGroup], gone: &MissingServers) -> bool {
    groups.iter().all(|group| group.missing(gone) <= group.losses_max)
}

/// How the nodes go on without the data of a server that has no copy: operations on them fail, others succeed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// The node of the server.
    pub node: usize,
    /// The step of the server.
    pub server: String,
    /// Takes the rights of the node away. For a node that is lost.
    pub fence: EngineStep,
    /// Before the mounts know.
    pub prepare: EngineStep,
    /// When the mounts know, by [`EnginePlan::announce_loss`].
    pub finish: EngineStep,
}

/// How the other nodes go on without one that does not answer: it loses its rights on the namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fence {
    /// The node.
    pub node: usize,
    /// Where the node answers new connections, be it with a refusal.
    pub address: SocketAddr,
    /// The server on the node whose loss proves that the node is gone. If it ended before, nothing is proven.
    pub witness: String,
    /// Takes the rights away. Fails while other nodes reach the witness.
    pub step: EngineStep,
}

/// A plan for all nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnginePlan {
    /// The steps. Each is preceded by those that it names.
    pub steps: Vec<EngineStep>,
    /// The servers among them.
    pub servers: Vec<ServerGroup>,
    /// The nodes that the others can go on without.
    pub fences: Vec<Fence>,
    /// The servers whose data can be given up.
    pub losses: Vec<Loss>,
    /// Tells the mount of each node which data were lost last. One for each node, not for each loss: a plan grows with
    /// the nodes, not with their square.
    pub announce_loss: Vec<EngineStep>,
    /// The directory that shows the namespace, on each node.
    pub mount: PathBuf,
    /// Variables for the job's processes.
    pub environment: BTreeMap<String, String>,
}

impl EnginePlan {
    /// Checks that names are unique, that nodes exist and that each step follows steps of the plan that precede it.
    ///
    /// # Errors
    /// Describes the first fault, which is one of the driver.
    pub fn check(&self, nodes: usize) -> Result<(), String> {
        let mut before: Vec<&str> = Vec::new();
        for step in &self.steps {
            if before.contains(&step.id.as_str()) {
                return Err(format!("two steps are named {}", step.id));
            }
            if step.node >= nodes {
                return Err(format!("step {} is on node {} of {nodes}", step.id, step.node));
            }
            if let Some(missing) = step.after.iter().find(|name| !before.contains(&name.as_str())) {
                return Err(format!(
                    "step {} follows {missing}, which does not precede it",
                    step.id
                ));
            }
            before.push(&step.id);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(id: &str, node: usize, after: &[&str]) -> EngineStep {
        EngineStep {
            id: id.to_owned(),
            node,
            role: Role::Once,
            directories: Vec::new(),
            files: Vec::new(),
            argv: Vec::new(),
            environment: BTreeMap::new(),
            ready: Ready::Ended,
            ready_s_max: 1,
            stop: Stop::Nothing,
            after: after.iter().map(|&name| name.to_owned()).collect(),
            keeps: None,
            fence: None,
        }
    }

    fn checked(steps: Vec<EngineStep>) -> Result<(), String> {
        EnginePlan { steps, ..EnginePlan::default() }.check(2)
    }

    #[test]
    fn plan_follows_from_its_own_steps() {
        checked(vec![step("a", 0, &[]), step("b", 1, &["a"])]).expect("plan");
    }

    #[test]
    fn group_serves_without_as_many_servers_as_it_may_lose() {
        let servers = (0..3).map(|node| (node, format!("n{node}.monitor"))).collect();
        let groups = [ServerGroup { servers, losses_max: 1, after_loss: None }];
        let names = |steps: &[&str]| steps.iter().map(|&step| step.to_owned()).collect();
        let serves_without = |steps: &[&str], lost: &[usize], given_up: &[&str]| {
            let lost = lost.iter().copied().collect();
            serve_without(
                &groups,
                &MissingServers { ended: names(steps), lost, given_up: names(given_up) },
            )
        };
        let serves = |steps: &[&str], lost: &[usize]| serves_without(steps, lost, &[]);
        assert!(serves(&["n0.monitor", "n1.mount"], &[]));
        assert!(serves(&["n0.monitor"], &[0]));
        assert!(!serves(&["n0.monitor", "n2.monitor"], &[]));
        assert!(!serves(&["n0.monitor"], &[1]));
        assert!(serves_without(&["n0.monitor"], &[1], &["n1.monitor"]));
        assert!(!serves_without(&["n0.monitor"], &[1], &["n2.monitor"]));
    }

    #[test]
    fn contradictions_are_named() {
        let wrong = [
            (vec![step("a", 0, &[]), step("a", 1, &[])], "two steps are named a"),
            (vec![step("a", 2, &[])], "node 2 of 2"),
            (vec![step("a", 0, &["b"]), step("b", 0, &[])], "follows b"),
        ];
        for (steps, part) in wrong {
            let error = checked(steps).expect_err(part);
            assert!(error.contains(part), "{error}");
        }
    }
}
