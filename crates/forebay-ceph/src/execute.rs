//! Executes actions on a cluster, each within its limit.
//! Assumes that a call of Ceph's libraries can hang: a worker thread makes it, and the caller stops to wait at the limit.
//! Never repeats an action that failed.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use forebay_host::{clock, threads};
use serde::Serialize;
use serde_json::{Value, json};

use crate::actions::{Action, Actions, Step};
use crate::block_list::block_mount;
use crate::give_up::{note_lost_groups, replace_lost_groups, send_lost_groups};
use crate::questions::{ask, ask_at_once, command, not_understood, value_of};
use crate::{Connection, Error, FileSystem, Monitors};

/// Between two questions to the monitors.
const POLL: Duration = Duration::from_millis(25);
/// Beyond the limit that Ceph's libraries have, whose error says more.
const GRACE_S: u32 = 2;

/// A completed action, one line of JSON.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The number of the action in its list, from 0.
    pub action: usize,
    /// What it did.
    pub name: String,
    /// How long it took.
    pub seconds: f64,
    /// What it answered: JSON where the answer is JSON, otherwise text; null without an answer.
    pub output: Value,
    /// The error number that `accept` allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted: Option<String>,
}

/// What the worker says.
enum WorkerMessage {
    /// Begins something that must be complete within so many seconds.
    Begin(String, u32),
    /// What it waits for.
    State(String),
    Done(Report),
    Failed(Error),
    /// The connections are closed.
    Closed,
}

/// Executes all actions in their order, and hands over the report of each.
///
/// # Errors
/// The first failure. A call of Ceph's libraries that did not return in time still runs then in its
/// thread, so the caller should end the process without the libraries' cleanup.
pub fn execute(actions: &Actions, report: &mut dyn FnMut(&Report)) -> Result<(), Error> {
    let (sender, news) = channel();
    let work = actions.clone();
    let s_max = work.connection.connect_s_max.saturating_add(GRACE_S);
    threads::spawn(move || {
        let mut cluster = Cluster { connection: work.connection, monitors: None, files: None };
        let closed = cluster.act(&work.actions, &sender).and_then(|()| {
            sender.send(WorkerMessage::Begin("the end of the connection".to_owned(), s_max)).ok();
            cluster.close()
        });
        // Nobody listens any more if a limit is over.
        sender.send(closed.map_or_else(WorkerMessage::Failed, |()| WorkerMessage::Closed)).ok();
    })?;
    follow(&news, s_max, report)
}

/// Hands over what the worker reports, until it ends or a limit is over.
fn follow(
    news: &Receiver<WorkerMessage>,
    connect_s_max: u32,
    report: &mut dyn FnMut(&Report),
) -> Result<(), Error> {
    let (mut action, mut s_max, mut state) = ("the connection".to_owned(), connect_s_max, None);
    let mut end = clock::now() + seconds(s_max);
    loop {
        match news.recv_timeout(end.saturating_duration_since(clock::now())) {
            Ok(WorkerMessage::Begin(name, limit)) => {
                (action, s_max, state) = (name, limit, None);
                end = clock::now() + seconds(limit);
            }
            Ok(WorkerMessage::State(now)) => state = Some(now),
            Ok(WorkerMessage::Done(done)) => report(&done),
            Ok(WorkerMessage::Failed(error)) => return Err(error),
            Ok(WorkerMessage::Closed) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => return Err(Error::Limit { action, s_max, state }),
            // The thread has panicked, and printed why.
            Err(RecvTimeoutError::Disconnected) => {
                let source = std::io::Error::other(format!("{action} was given up"));
                return Err(threads::error(source).into());
            }
        }
    }
}

fn seconds(number: u32) -> Duration {
    Duration::from_secs(number.into())
}

/// The connections, each made when the first action needs it.
struct Cluster {
    connection: Connection,
    monitors: Option<Monitors>,
    files: Option<FileSystem>,
}

impl Cluster {
    fn act(&mut self, actions: &[Action], news: &Sender<WorkerMessage>) -> Result<(), Error> {
        for (number, action) in actions.iter().enumerate() {
            let start = clock::now();
            let (output, accepted) = match self.take_step(action, news) {
                Ok(output) => (output, None),
                Err(Error::Command { error, .. }) if action.accept.contains(&error.name()) => {
                    (Value::Null, Some(error.name()))
                }
                Err(error) => return Err(error),
            };
            let seconds = start.elapsed().as_secs_f64();
            let name = action.step.name();
            let report = Report { action: number, name, seconds, output, accepted };
            news.send(WorkerMessage::Done(report)).ok();
        }
        Ok(())
    }

    /// Takes one step, after it has connected to what the step needs.
    fn take_step(&mut self, action: &Action, news: &Sender<WorkerMessage>) -> Result<Value, Error> {
        let on = StepContext { action, news, connect_s_max: self.connection.connect_s_max };
        match &action.step {
            Step::Monitor(command) => on.monitors(self, |monitors| {
                let input = action.input.as_deref().unwrap_or_default();
                ask(monitors, command, input).map(|answer| value_of(&answer))
            }),
            Step::MonitorAtOnce(commands) => {
                on.monitors(self, |monitors| ask_at_once(monitors, commands))
            }
            Step::WaitForMetadataServers { file_system, active, standby } => {
                on.dump(self, "fs dump", |dump| {
                    let found = metadata_servers(dump, file_system)?;
                    let is_enough = found.0 >= *active && found.1 >= *standby;
                    Some((is_enough, format!("{} active, {} standby", found.0, found.1)))
                })
            }
            Step::WaitForStorage { daemons } => on.dump(self, "osd stat", |stat| {
                let up = stat.get("num_up_osds")?.as_u64()?;
                Some((up >= *daemons, format!("{up} up")))
            }),
            Step::WaitForStorageLoss { daemon } => on.dump(self, "osd dump", |dump| {
                let is_up = is_storage_up(dump, *daemon)?;
                Some((!is_up, if is_up { "up" } else { "down" }.to_owned()))
            }),
            Step::NoteLostGroups { daemon, daemons, new_pool } => on.monitors(self, |monitors| {
                note_lost_groups(monitors, (*daemon, *daemons), new_pool)
            }),
            Step::TellMount { mount, file } => {
                on.monitors(self, |monitors| send_lost_groups(monitors, mount, file))
            }
            Step::BlockMount { addresses } => {
                on.monitors(self, |monitors| block_mount(monitors, addresses))
            }
            Step::ReplaceLostGroups => on.monitors(self, replace_lost_groups),
            Step::WaitForGroups { s_max } => {
                let begun = clock::now();
                on.dump(self, "osd dump", |dump| {
                    let missing = pools_with_missing_groups(dump)?;
                    let is_enough = missing.is_empty() || begun.elapsed() > seconds(*s_max);
                    Some((is_enough, format!("groups are missing in {}", missing.join(", "))))
                })
            }
            Step::MakeDirectory { path, mode, uid, gid } => on.files(self, |files| {
                files.make_directories(path, *mode, *uid, *gid).map(|()| Value::Null)
            }),
            Step::SetAttribute { path, name, value } => {
                on.files(self, |files| files.set_attribute(path, name, value).map(|()| Value::Null))
            }
            Step::Attribute { path, name } => on.files(self, |files| {
                files.attribute(path, name).map(|text| value_of(text.as_bytes()))
            }),
        }
    }

    fn monitors(&mut self) -> Result<&Monitors, Error> {
        let monitors = match self.monitors.take() {
            Some(monitors) => monitors,
            None => Monitors::connect(&self.connection)?,
        };
        Ok(self.monitors.insert(monitors))
    }

    fn files(&mut self) -> Result<&FileSystem, Error> {
        let files = match self.files.take() {
            Some(files) => files,
            None => FileSystem::mount(&self.connection)?,
        };
        Ok(self.files.insert(files))
    }

    fn close(&mut self) -> Result<(), Error> {
        self.monitors = None;
        self.files.take().map_or(Ok(()), FileSystem::unmount)
    }
}

/// Takes a step on what it needs, and says when it begins.
#[derive(Clone, Copy)]
struct StepContext<'a> {
    action: &'a Action,
    news: &'a Sender<WorkerMessage>,
    connect_s_max: u32,
}

impl StepContext<'_> {
    fn connects(self, to: &str) {
        let limit = self.connect_s_max.saturating_add(GRACE_S);
        self.news.send(WorkerMessage::Begin(format!("the connection to {to}"), limit)).ok();
    }

    fn begins(self) {
        self.news.send(WorkerMessage::Begin(self.action.step.name(), self.action.s_max)).ok();
    }

    fn monitors(
        self,
        cluster: &mut Cluster,
        act: impl FnOnce(&Monitors) -> Result<Value, Error>,
    ) -> Result<Value, Error> {
        self.connects("the monitors");
        let monitors = cluster.monitors()?;
        self.begins();
        act(monitors)
    }

    /// Waits for something in what a command prints.
    fn dump(
        self,
        cluster: &mut Cluster,
        prefix: &str,
        look: impl Fn(&Value) -> Option<(bool, String)>,
    ) -> Result<Value, Error> {
        self.monitors(cluster, |monitors| wait(monitors, prefix, self.news, look))
    }

    fn files(
        self,
        cluster: &mut Cluster,
        act: impl FnOnce(&FileSystem) -> Result<Value, Error>,
    ) -> Result<Value, Error> {
        self.connects("the metadata server");
        let files = cluster.files()?;
        self.begins();
        act(files)
    }
}

/// Asks until `look` says that it is enough. `look` also returns the state for messages; none if it does
/// not understand the answer. The limit is the caller's, which stops to listen when it is over.
fn wait(
    monitors: &Monitors,
    prefix: &str,
    news: &Sender<WorkerMessage>,
    look: impl Fn(&Value) -> Option<(bool, String)>,
) -> Result<Value, Error> {
    let command = command(json!({"prefix": prefix, "format": "json"}));
    loop {
        let answer = ask(monitors, &command, "")?;
        let answer: Value = serde_json::from_slice(&answer)
            .map_err(|error| not_understood(prefix, error.to_string()))?;
        let (is_enough, state) = look(&answer)
            .ok_or_else(|| not_understood(prefix, "a member is missing".to_owned()))?;
        if is_enough {
            return Ok(Value::Null);
        }
        if news.send(WorkerMessage::State(state)).is_err() {
            return Ok(Value::Null); // the limit is over
        }
        clock::sleep(POLL);
    }
}

/// The active servers of a file system and the standby servers of the cluster; none if a member is missing.
fn metadata_servers(dump: &Value, file_system: &str) -> Option<(usize, usize)> {
    let standby = dump.get("standbys")?.as_array()?.len();
    let is_it =
        |one: &&Value| one.pointer("/mdsmap/fs_name").and_then(Value::as_str) == Some(file_system);
    let Some(found) = dump.get("filesystems")?.as_array()?.iter().find(is_it) else {
        return Some((0, standby));
    };
    let servers = found.pointer("/mdsmap/info")?.as_object()?.values();
    let is_active = |one: &&Value| one.get("state").and_then(Value::as_str) == Some("up:active");
    Some((servers.filter(is_active).count(), standby))
}

/// The pools with groups that no daemon has made yet; none if a member is missing.
fn pools_with_missing_groups(dump: &Value) -> Option<Vec<&str>> {
    let mut missing = Vec::new();
    for pool in dump.get("pools")?.as_array()? {
        if pool.get("flags_names")?.as_str()?.split(',').any(|flag| flag == "creating") {
            missing.push(pool.get("pool_name")?.as_str()?);
        }
    }
    Some(missing)
}

/// Whether a storage daemon is up; none if a member is missing.
fn is_storage_up(dump: &Value, daemon: u64) -> Option<bool> {
    let is_it = |one: &&Value| one.get("osd").and_then(Value::as_u64) == Some(daemon);
    let found = dump.get("osds")?.as_array()?.iter().find(is_it)?;
    Some(found.get("up")?.as_u64()? == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_servers_counts_active_and_standby() {
        let dump = json!({
            "standbys": [{"name": "b"}],
            "filesystems": [{"mdsmap": {"fs_name": "x", "info": {
                "gid_1": {"state": "up:active"}, "gid_2": {"state": "up:creating"}}}}],
        });
        assert_eq!(metadata_servers(&dump, "x"), Some((1, 1)));
        assert_eq!(metadata_servers(&dump, "y"), Some((0, 1)));
        assert_eq!(metadata_servers(&json!({}), "x"), None);
    }

    #[test]
    fn pools_wait_for_groups_while_they_are_made() {
        let dump = json!({"pools": [
            {"pool_name": "data", "flags_names": "hashpspool"},
            {"pool_name": "data.without.2", "flags_names": "hashpspool,creating"}]});
        assert_eq!(pools_with_missing_groups(&dump), Some(vec!["data.without.2"]));
        assert_eq!(pools_with_missing_groups(&json!({"pools": [{}]})), None);
    }

    #[test]
    fn storage_daemon_is_up_or_down_or_not_known() {
        let dump = json!({"osds": [{"osd": 0, "up": 1}, {"osd": 1, "up": 0}]});
        let up = |daemon| is_storage_up(&dump, daemon);
        assert_eq!((up(0), up(1), up(2)), (Some(true), Some(false), None));
    }

    #[test]
    fn limit_names_the_action_and_its_last_state() {
        let (sender, news) = channel();
        sender.send(WorkerMessage::Begin("the wait for 2 storage daemons".to_owned(), 0)).unwrap();
        sender.send(WorkerMessage::State("1 up".to_owned())).unwrap();
        let error = follow(&news, 0, &mut |_| {}).unwrap_err();
        assert!(matches!(error, Error::Limit { s_max: 0, .. }));
        assert!(error.to_string().starts_with("the wait for 2 storage daemons"), "{error}");
    }

    #[test]
    fn worker_that_panics_is_an_error() {
        let (sender, news) = channel::<WorkerMessage>();
        drop(sender);
        assert!(follow(&news, 5, &mut |_| {}).is_err());
    }

    #[test]
    fn answers_are_json_or_text() {
        assert_eq!(value_of(b""), Value::Null);
        assert_eq!(value_of(b"{\"a\":1}\n"), json!({"a": 1}));
        assert_eq!(value_of(b"pool created\n"), json!("pool created"));
    }
}
