//! The driver of profiles with `engine = "command"`: commands of the site start a file system, or make a
//! directory on one that the site has. Pure: the agents of the nodes run the commands.

mod template;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use template::Values;
pub(crate) use template::{When, check_template, uses as template_uses};

use crate::engine::{CapacityCommand, Engine, EngineRequest, Missing, Promise};
use crate::host_facts::HostFacts;
use crate::profile::{CommandNodes, CommandProfile, NodeCommand};
use crate::steps::{EnginePlan, EngineStep, PlannedFile, Ready, Role, Stop};

/// The file with one node a line, in the job's directory on each node.
const NODE_FILE: &str = "nodes";
/// The time for steps of Forebay itself, in seconds.
const OWN_STEP_S_MAX: u32 = 30;
/// The time between SIGTERM and SIGKILL for a command beyond its limit.
const KILL_AFTER: &str = "--kill-after=5";

/// The driver with the profile that it carries out.
pub struct Command {
    /// The name of the profile.
    name: String,
    profile: Arc<CommandProfile>,
}

impl Command {
    /// The driver of a profile.
    pub fn new(name: &str, profile: Arc<CommandProfile>) -> Self {
        Self { name: name.to_owned(), profile }
    }

    fn values(&self, request: &EngineRequest, nodes: &[HostFacts], node: usize) -> Values {
        let names: Vec<_> = nodes.iter().map(|node| node.name.as_str()).collect();
        let mut values = Values::of_names(&self.profile.options, &names, node, &request.id);
        values.set("user", &request.user);
        values.set("store", &text(request.data_directory(&nodes[node])));
        values.set("directory", &text(request.directory.clone()));
        values.set("node_file", &text(request.directory.join(NODE_FILE)));
        values.set_number("capacity_bytes", request.capacity_bytes);
        values.set_number("redundancy", request.redundancy.into());
        values.set_number("stripe_bytes", request.layout.stripe_unit_bytes);
        let servers = request.layout.stripe_count.unwrap_or(nodes.len() as u32);
        values.set_number("stripe_count", servers.into());
        values
    }

    /// The values for the commands of a node, with the mount.
    fn all_values(
        &self,
        request: &EngineRequest,
        nodes: &[HostFacts],
        node: usize,
    ) -> Result<Values, String> {
        let mut values = self.values(request, nodes, node);
        let mount = match &self.profile.mount {
            Some(template) => values.render(template).map_err(|error| format!("mount: {error}"))?,
            None => text(request.mount()),
        };
        if !mount.starts_with('/') {
            return Err(format!("mount: {mount:?} is not an absolute path"));
        }
        values.set("mount", &mount);
        Ok(values)
    }

    /// The words of a command, with its variables.
    fn words(&self, command: &NodeCommand, values: &Values) -> Result<Vec<String>, String> {
        let mut words = vec!["env".to_owned()];
        for (name, template) in &self.profile.environment {
            let value = values.render(template);
            let value = value.map_err(|error| format!("environment.{name}: {error}"))?;
            words.push(format!("{name}={value}"));
        }
        let script = values.render(&command.command)?;
        let limit = command.time_s_max.to_string();
        words.extend(["timeout", KILL_AFTER, &limit, "/bin/sh", "-c"].map(str::to_owned));
        words.push(format!("exec 2>&1\n{script}"));
        Ok(words)
    }
}

impl Engine for Command {
    fn name(&self) -> &str {
        &self.name
    }

    fn about(&self) -> &'static str {
        "commands of a profile"
    }

    fn programs(&self) -> Vec<&str> {
        self.profile.programs.iter().map(String::as_str).collect()
    }

    fn enforces_capacity(&self) -> bool {
        self.profile.quota
    }

    fn mounts(&self) -> bool {
        self.profile.mount.is_none() && self.profile.mounted
    }

    fn promise(&self, _redundancy: u32, _in_memory: bool, _nodes: &[HostFacts]) -> Promise {
        self.profile.promise.clone()
    }

    fn missing(&self, node: &HostFacts) -> Vec<Missing> {
        let absent = |program: &&String| !node.programs.contains_key(*program);
        let missing = |program: &String| Missing {
            what: program.clone(),
            remedy: format!("install {program} on {}, which profile {} runs", node.name, self.name),
            in_bundle: false,
        };
        self.profile.programs.iter().filter(absent).map(missing).collect()
    }

    fn capacity(&self, asked: &CapacityCommand) -> Result<Option<Vec<String>>, String> {
        let Some(command) = &self.profile.capacity else { return Ok(None) };
        if command.on == CommandNodes::First && asked.node > 0 {
            return Ok(None);
        }
        let mut values = Values::of_names(&self.profile.options, asked.names, asked.node, asked.id);
        values.set("user", asked.user);
        let words = self.words(command, &values);
        words.map(Some).map_err(|error| format!("capacity: {error}"))
    }

    fn plan(&self, request: &EngineRequest, nodes: &[HostFacts]) -> Result<EnginePlan, String> {
        if request.redundancy > 1 && !self.profile.uses("redundancy") {
            return Err(format!(
                "the profile keeps one copy, and the job asks for a redundancy of {}",
                request.redundancy
            ));
        }
        if let Some(servers @ 2..) = request.metadata_servers {
            return Err(format!(
                "{servers} metadata servers are not offered: they are those of the site"
            ));
        }
        let mut planner = Planner { driver: self, steps: Vec::new(), last: Vec::new() };
        let of_node = |node| self.all_values(request, nodes, node);
        let values: Vec<Values> = (0..nodes.len()).map(of_node).collect::<Result<_, _>>()?;
        planner.add_preparation(request, nodes, &values)?;
        planner.add_starts(nodes, &values)?;
        planner.add_mounts(request, nodes, &values);
        planner.add_status(nodes, &values)?;
        Ok(EnginePlan { steps: planner.steps, mount: request.mount(), ..EnginePlan::default() })
    }

    fn recover(
        &self,
        _request: &EngineRequest,
        _nodes: &[HostFacts],
    ) -> Result<EnginePlan, String> {
        Err(format!("profile {} has no command that starts it with the data of before", self.name))
    }
}

/// Collects steps. Those of one kind wait for all of the kind before.
struct Planner<'a> {
    driver: &'a Command,
    steps: Vec<EngineStep>,
    /// The steps of the kind before.
    last: Vec<String>,
}

impl Planner<'_> {
    fn step(&self, nodes: &[HostFacts], node: usize, name: &str) -> EngineStep {
        EngineStep {
            id: format!("{}.{name}", nodes[node].name),
            node,
            role: Role::Once,
            directories: Vec::new(),
            files: Vec::new(),
            argv: Vec::new(),
            environment: BTreeMap::new(),
            ready: Ready::Ended,
            ready_s_max: OWN_STEP_S_MAX,
            stop: Stop::Nothing,
            after: self.last.clone(),
            keeps: None,
            fence: None,
        }
    }

    fn add(&mut self, steps: Vec<EngineStep>) {
        if !steps.is_empty() {
            self.last = steps.iter().map(|step| step.id.clone()).collect();
            self.steps.extend(steps);
        }
    }

    /// Writes the node file, checks that the mount is not used yet, and notes the stop commands: they also run after a start that failed. Nodes
    /// carry out the notes in reverse order.
    fn add_preparation(
        &mut self,
        request: &EngineRequest,
        nodes: &[HostFacts],
        values: &[Values],
    ) -> Result<(), String> {
        let lines: String = nodes.iter().map(|node| format!("{}\n", node.name)).collect();
        let file = PlannedFile { path: request.directory.join(NODE_FILE), text: lines };
        let prepare = values.iter().enumerate().map(|(node, values)| {
            let step = self.step(nodes, node, "prepare");
            let argv = match self.driver.profile.mount {
                // The stop commands may remove what is there, so it must be the job's own.
                Some(_) => shell(UNUSED, &[values.get("mount")]),
                None => Vec::new(),
            };
            EngineStep { files: vec![file.clone()], argv, ..step }
        });
        self.add(prepare.collect());
        for (number, command) in self.driver.profile.stop.iter().enumerate().rev() {
            let mut steps = Vec::new();
            for node in command.on.nodes(nodes.len()) {
                let words = self.driver.words(command, &values[node]);
                let words = words.map_err(|error| format!("stop {}: {error}", number + 1))?;
                let step = self.step(nodes, node, &format!("stop-{}", number + 1));
                steps.push(EngineStep { stop: Stop::Command(words), ..step });
            }
            self.add(steps);
        }
        Ok(())
    }

    fn add_starts(&mut self, nodes: &[HostFacts], values: &[Values]) -> Result<(), String> {
        for (number, command) in self.driver.profile.start.iter().enumerate() {
            let mut steps = Vec::new();
            for node in command.on.nodes(nodes.len()) {
                let argv = self.driver.words(command, &values[node]);
                let argv = argv.map_err(|error| format!("start {}: {error}", number + 1))?;
                let step = self.step(nodes, node, &format!("start-{}", number + 1));
                // The command's own limit comes first: its message is better.
                let ready_s_max = command.time_s_max + OWN_STEP_S_MAX;
                steps.push(EngineStep { argv, ready_s_max, ..step });
            }
            self.add(steps);
        }
        Ok(())
    }

    /// Checks on each node that the mount is there, and shows it under the job's directory.
    fn add_mounts(&mut self, request: &EngineRequest, nodes: &[HostFacts], values: &[Values]) {
        let shown = text(request.mount());
        let test = if self.driver.profile.mounted { "mountpoint -q" } else { "test -d" };
        let what = if self.driver.profile.mounted { "mount point" } else { "directory" };
        let mut steps = Vec::new();
        for (node, values) in values.iter().enumerate() {
            let mount = values.get("mount");
            let script = format!(
                "{test} \"$1\" || {{ echo \"$1 is no {what} on this node\" >&2; exit 1; }}\n\
                 test \"$1\" = \"$2\" || ln -s \"$1\" \"$2\""
            );
            let argv = shell(&script, &[mount, shown.clone()]);
            steps.push(EngineStep { argv, ..self.step(nodes, node, "mount") });
        }
        self.add(steps);
    }

    /// A loop on the nodes, which ends when the status command fails; the monitor reports its end.
    fn add_status(&mut self, nodes: &[HostFacts], values: &[Values]) -> Result<(), String> {
        let Some(command) = &self.driver.profile.status else { return Ok(()) };
        let mut steps = Vec::new();
        for node in command.on.nodes(nodes.len()) {
            let words = self.driver.words(command, &values[node]);
            let words = words.map_err(|error| format!("status: {error}"))?;
            let script = "interval=$1; shift\n\
                          while sleep \"$interval\"; do\n\
                          printed=$(\"$@\") || { echo \"the status command failed: $printed\"; exit 1; }\n\
                          done";
            let mut arguments = vec![self.driver.profile.status_interval_s.to_string()];
            arguments.extend(words);
            let argv = shell(script, &arguments);
            let step = self.step(nodes, node, "status");
            steps.push(EngineStep { argv, role: Role::Watch, ready: Ready::Started, ..step });
        }
        self.add(steps);
        Ok(())
    }
}

/// Fails if a path is a mount point, or a directory with content, or no directory.
const UNUSED: &str = "\
    if mountpoint -q \"$1\"; then what='a mount point already'\n\
    elif test -d \"$1\"; then what=$(ls -A \"$1\" | sed -n '1s/.*/a directory that is not empty/p')\n\
    elif test -e \"$1\"; then what='no directory'\n\
    fi\n\
    test -z \"$what\" || { echo \"$1 is $what: another job may use it\" >&2; exit 1; }";

/// The words of a shell script with arguments.
fn shell(script: &str, arguments: &[String]) -> Vec<String> {
    let mut words = ["/bin/sh", "-c", script, "sh"].map(str::to_owned).to_vec();
    words.extend_from_slice(arguments);
    words
}

fn text(path: PathBuf) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
