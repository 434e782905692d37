//! One node of a job: its directory, its steps and their processes. Writes each step down before it is
//! carried out, so that an agent that replaces this one can stop it. Never removes what is mounted.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use forebay_engine::{DataLocation, EngineStep, PRIVATE, Ready, Role, Stop, mount_in};
use forebay_host::process::{Identity, command, run_captured};
use forebay_host::{files, filesystem, mounts};
use serde::{Deserialize, Serialize};

use super::processes::{self, NodePlace, Process, end_of_log};
use super::protocol::{Claim, EndedStep, NodeHealth};

/// The time for a command that stops a step.
const STOP_MAX: Duration = Duration::from_secs(120);

/// The node was restarted, or the directory removed.
pub(crate) const GONE: &str = "the directory of the job is gone there";

/// What is written down about a node.
#[derive(Debug, Default, Serialize, Deserialize)]
struct NodeRecord {
    /// The directory for data in the store.
    data: Option<PathBuf>,
    /// The second path of the private namespace.
    #[serde(default)]
    node_local: Option<PathBuf>,
    /// What the servers kept before the namespace was mounted: what they need themselves.
    #[serde(default)]
    own_bytes: Option<u64>,
    /// The steps that were begun.
    steps: Vec<BegunStep>,
    /// The agent.
    agent: Identity,
}

/// What is needed to stop a step.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct BegunStep {
    id: String,
    role: Role,
    stop: Stop,
    /// Whether its process ends by itself.
    is_brief: bool,
    /// The whole step, if it can be started again.
    again: Option<EngineStep>,
    #[serde(default)]
    keeps: Option<DataLocation>,
}

/// A node of a job.
pub(super) struct Node {
    place: NodePlace,
    /// Whether an earlier agent made the directory.
    is_taken_over: bool,
    record: NodeRecord,
    processes: HashMap<String, Process>,
    /// Steps whose process ended, or is to end, and that need no fence any more.
    fenced: HashSet<String>,
}

impl Node {
    /// Continues what an earlier agent of this directory began, and ends that agent.
    pub(super) fn attach(place: NodePlace) -> Result<Self, String> {
        let directory = &place.directory;
        let mut record = NodeRecord::default();
        let exists = files::status_of_name(directory).is_ok();
        if exists {
            if !files::is_private_dir(directory) {
                return Err(format!(
                    "{} is not a private directory of this user",
                    directory.display()
                ));
            }
            match files::read_json(&record_in(directory)) {
                Ok(found) => record = found,
                // An agent was killed right after it had made the directory.
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error.to_string()),
            }
            record.agent.kill();
        }
        let last = record.steps.iter().filter(|step| !step.is_brief);
        let adopt =
            |id: &str| Process::adopt(id, &place).unwrap_or_else(|| Process::gone(id, &place));
        let processes = last.map(|step| (step.id.clone(), adopt(&step.id))).collect();
        let fenced = HashSet::new();
        let mut node = Self { place, is_taken_over: exists, record, processes, fenced };
        node.record.agent = Identity::ours().map_err(|error| error.to_string())?;
        if exists {
            node.write()?;
        }
        Ok(node)
    }

    /// Whether the job's directory exists.
    pub(super) fn is_claimed(&self) -> bool {
        self.record.data.is_some()
    }

    /// Makes the job's directory and the directory for data, and shows the private namespace.
    pub(super) fn claim(&mut self, asked: Claim) -> Result<(), String> {
        let is_taken_over = self.is_taken_over;
        let done = |made: forebay_host::Result<()>| match made {
            // The earlier agent ended in the midst of this.
            Err(error) if is_taken_over && error.already_exists() => Ok(()),
            made => made.map_err(|error| error.to_string()),
        };
        let Claim { data, private, shown_at, node_local } = asked;
        done(files::make_directory(&self.place.directory, 0o700))?;
        self.record.data = Some(data.clone());
        self.record.node_local.clone_from(&node_local);
        self.write()?;
        done(files::make_directory(&self.place.directory.join("log"), 0o700))?;
        done(files::make_directory(&data, 0o700))?;
        if private {
            let namespace = data.join(PRIVATE);
            done(files::make_directory(&namespace, 0o755))?;
            done(files::make_link(&namespace, &self.place.directory.join(PRIVATE)))?;
            if let Some(at) = shown_at {
                done(files::make_directories(&at, 0o700).map(drop))?;
                done(files::make_link(&namespace, &at.join(PRIVATE)))?;
            }
            if let Some(path) = node_local {
                show_node_local(&namespace, &path)?;
            }
        }
        Ok(())
    }

    /// Continues a step that an earlier agent may have begun.
    pub(super) fn resume(&mut self, step: &EngineStep) -> Result<Option<Process>, String> {
        let was_begun = self.record.steps.iter().any(|begun| begun.id == step.id);
        let earlier = self.processes.remove(&step.id);
        if !was_begun {
            return self.begin(step);
        }
        let earlier = earlier.or_else(|| Process::adopt(&step.id, &self.place));
        let earlier = earlier.unwrap_or_else(|| Process::gone(&step.id, &self.place));
        match earlier.is_known() {
            true => Ok(Some(earlier)),
            false => self.begin(step),
        }
    }

    /// Writes a step down, then its files, and starts its process.
    pub(super) fn begin(&mut self, step: &EngineStep) -> Result<Option<Process>, String> {
        if !self.is_claimed() {
            return Err(GONE.to_owned());
        }
        let text = |error: forebay_host::Error| error.to_string();
        if step.role == Role::Mount && self.record.own_bytes.is_none() {
            self.record.own_bytes = self.kept_bytes();
        }
        self.fenced.remove(&step.id);
        self.record.steps.retain(|begun| begun.id != step.id);
        self.record.steps.push(BegunStep {
            id: step.id.clone(),
            role: step.role,
            stop: step.stop.clone(),
            is_brief: step.ready == Ready::Ended,
            again: (step.role == Role::Mount).then(|| step.clone()),
            keeps: step.keeps.clone(),
        });
        self.write()?;
        for directory in &step.directories {
            files::make_directories(directory, 0o700).map_err(text)?;
        }
        for file in &step.files {
            write_private(&file.path, file.text.as_bytes()).map_err(text)?;
        }
        Ok(processes::start(&self.place, step)?.map(Process::Child))
    }

    /// Keeps the process of a step that is ready.
    pub(super) fn keep(&mut self, step: &EngineStep, process: Process) {
        if step.ready != Ready::Ended {
            self.processes.insert(step.id.clone(), process);
        }
    }

    /// The last lines of the log of a step.
    pub(super) fn log(&self, step: &str) -> String {
        end_of_log(&self.place, step)
    }

    /// Which processes ended, and the space of the store.
    pub(super) fn health(&mut self) -> Result<NodeHealth, String> {
        if !self.is_claimed() {
            return Err(GONE.to_owned());
        }
        let mut ended = Vec::new();
        for step in self.record.steps.iter().filter(|step| !step.is_brief) {
            // Without a process it is just being started.
            let process = self.processes.get_mut(&step.id);
            if let Some(end) = process.and_then(Process::ended) {
                let mut how = end.how;
                if !end.is_killed {
                    let log = end_of_log(&self.place, &step.id);
                    how = format!("{how}\n{log}").trim_end().to_owned();
                }
                ended.push(EndedStep { id: step.id.clone(), role: step.role, how });
            }
        }
        let data = self.record.data.as_deref().unwrap_or(Path::new("/"));
        let space = filesystem::space(data).map(|space| space.available_bytes);
        let store_available_bytes = space.unwrap_or_default();
        let own_bytes = self.record.own_bytes.unwrap_or_default();
        let stored_bytes = self.kept_bytes().map(|bytes| bytes.saturating_sub(own_bytes));
        Ok(NodeHealth { ended, mount_error: None, store_available_bytes, stored_bytes })
    }

    /// The fences of mounts that ended, each once.
    pub(super) fn fences(&mut self, ended: &[EndedStep]) -> Vec<EngineStep> {
        let mounts = self.record.steps.iter().filter_map(|step| step.again.as_ref());
        let is_due = |step: &&EngineStep| {
            ended.iter().any(|end| end.id == step.id) && self.fenced.insert(step.id.clone())
        };
        mounts.filter(is_due).filter_map(|step| step.fence.as_deref().cloned()).collect()
    }

    /// What the servers keep; none if there is no such server.
    fn kept_bytes(&self) -> Option<u64> {
        let of_step = |step: &BegunStep| match step.keeps.as_ref()? {
            DataLocation::Memory => self.processes.get(&step.id)?.memory_bytes(),
            DataLocation::Files(directory) => Some(files::tree_bytes(directory)),
        };
        self.record.steps.iter().filter_map(of_step).reduce(|sum, bytes| sum + bytes)
    }

    /// Lets all operations on the mounts fail, also those that wait.
    pub(super) fn abort(&self) -> Result<(), String> {
        let text = |error: forebay_host::Error| error.to_string();
        for at in self.mounts() {
            mounts::abort_fuse(at).map_err(text)?;
        }
        if self.mounts().next().is_some() {
            return Ok(());
        }
        // A command mounted it, and a link may show it.
        let shown = mount_in(&self.place.directory);
        let shown = files::read_link(&shown).unwrap_or(shown);
        match mounts::abort_fuse(&shown).map_err(text)? {
            true => Ok(()),
            false => Err(format!(
                "{} is no FUSE mount: operations that wait there are not ended",
                shown.display()
            )),
        }
    }

    /// Ends all mounts and their processes; the steps that start them again.
    pub(super) fn end_mounts(&mut self) -> Result<Vec<EngineStep>, String> {
        let text = |error: forebay_host::Error| error.to_string();
        for at in self.mounts() {
            mounts::abort_fuse(at).and_then(|_| mounts::detach_fuse(at)).map_err(text)?;
        }
        let steps: Vec<_> =
            self.record.steps.iter().filter_map(|step| step.again.clone()).collect();
        for step in &steps {
            processes::end_step(&self.place, &step.id)?;
            // Reaps it.
            self.processes.remove(&step.id).map(|mut process| process.ended());
        }
        Ok(steps)
    }

    fn mounts(&self) -> impl Iterator<Item = &Path> {
        self.record.steps.iter().rev().filter_map(|step| match &step.stop {
            Stop::Unmount(at) => Some(at.as_path()),
            _ => None,
        })
    }

    /// Stops all steps, mounts first; returns the leftovers. With `remove` the data and the directory go, too.
    pub(super) fn stop(&mut self, remove: bool) -> Vec<String> {
        let mut left = Vec::new();
        self.fenced.extend(self.record.steps.iter().map(|step| step.id.clone()));
        for at in self.mounts() {
            // A mount that does not answer any more cannot be detached by fusermount.
            let detached = mounts::detach_fuse(at)
                .or_else(|_| mounts::abort_fuse(at).and_then(|_| mounts::detach_fuse(at)));
            left.extend(detached.err().map(|error| error.to_string()));
        }
        for step in self.record.steps.iter().rev() {
            if let Stop::Command(argv) = &step.stop {
                left.extend(run_stop(&self.place.directory, argv).err());
            }
        }
        match processes::end_all(&self.place, remove) {
            Ok(alive) => left.extend(alive),
            Err(error) => left.push(error),
        }
        self.processes.values_mut().for_each(|process| drop(process.ended())); // reaps children
        if remove && left.is_empty() {
            left.extend(self.remove().err());
        }
        left
    }

    fn remove(&mut self) -> Result<(), String> {
        let all = mounts::mounts().map_err(|error| error.to_string())?;
        if let Some(mount) =
            all.iter().find(|mount| mount.mount_point.starts_with(&self.place.directory))
        {
            return Err(format!("{} is still mounted", mount.mount_point.display()));
        }
        let remove = |path: &Path| match files::remove_tree(path) {
            Err(error) if !error.is_not_found() => Err(error.to_string()),
            _ => Ok(()),
        };
        if let Some(data) = &self.record.data {
            if let Some(path) = &self.record.node_local
                && leads_to(path, &data.join(PRIVATE))
            {
                files::remove_file(path).map_err(|error| error.to_string())?;
            }
            remove(data)?;
        }
        remove(&self.place.directory)?;
        self.record = NodeRecord { agent: self.record.agent, ..NodeRecord::default() };
        Ok(())
    }

    fn write(&self) -> Result<(), String> {
        let path = record_in(&self.place.directory);
        let fresh = path.with_extension("fresh");
        files::write_json(&path, &fresh, &self.record).map_err(|error| error.to_string())
    }
}

/// Shows the private namespace at a path that the site prepares. An existing file belongs to somebody else.
fn show_node_local(namespace: &Path, path: &Path) -> Result<(), String> {
    let (error, hint) = match files::make_link(namespace, path) {
        Ok(()) => return Ok(()),
        Err(_) if leads_to(path, namespace) => return Ok(()), // an earlier agent made it
        Err(error) if error.already_exists() => {
            (error, "another job of this user may use it; remove it if none does")
        }
        Err(error) => {
            (error, "the site must make its directory on each node, writable for all users")
        }
    };
    Err(format!("{error}; {hint}"))
}

/// Whether this path is a link to that directory.
fn leads_to(path: &Path, directory: &Path) -> bool {
    files::read_link(path).is_ok_and(|target| target == directory)
}

fn record_in(directory: &Path) -> PathBuf {
    directory.join("node.json")
}

fn write_private(path: &Path, content: &[u8]) -> forebay_host::Result<()> {
    use std::io::Write;
    files::remove_if_present(path)?;
    let mut file = files::make_file(path, 0o600)?;
    files::with_path(file.write_all(content), "write", path)
}

fn run_stop(directory: &Path, argv: &[String]) -> Result<(), String> {
    let Some((program, arguments)) = argv.split_first() else {
        return Ok(());
    };
    let mut stop: Command = command(program);
    stop.args(arguments).current_dir(directory);
    match run_captured(stop, STOP_MAX, &|| true) {
        Ok(Some(done)) if done.success => Ok(()),
        Ok(Some(done)) => {
            Err(format!("the command that stops it failed: {program}: {}", done.output.trim()))
        }
        Ok(None) => Err(format!("{} did not end within {} s", argv.join(" "), STOP_MAX.as_secs())),
        Err(error) => Err(error.to_string()),
    }
}
