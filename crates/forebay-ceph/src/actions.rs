//! What `forebay __ceph FILE` does: actions on a cluster, as JSON.
//! Assumes that writer and reader are of the same version: an unknown member of an action is an error.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Connection;

/// The file of `forebay __ceph`: a connection, and actions in their order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Actions {
    /// The cluster.
    #[serde(flatten)]
    pub connection: Connection,
    /// What to do; the first failure ends it.
    pub actions: Vec<Action>,
}

/// One action and its limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub struct Action {
    /// What to do.
    #[serde(flatten)]
    pub step: Step,
    /// The input of a command to the monitors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Names of error numbers that count as success, as in `EEXIST`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub accept: Vec<String>,
    /// How long it may take, in seconds.
    pub s_max: u32,
}

/// The limit of an action without `s_max`.
const S_MAX: u32 = 30;

impl From<Step> for Action {
    fn from(step: Step) -> Self {
        Self { step, input: None, accept: Vec::new(), s_max: S_MAX }
    }
}

/// One member is the step, the others belong to all actions; no further ones are allowed.
impl TryFrom<Map<String, Value>> for Action {
    type Error = serde_json::Error;

    fn try_from(mut members: Map<String, Value>) -> Result<Self, Self::Error> {
        let mut take = |name: &str| members.remove(name).unwrap_or_default();
        let (input, accept, s_max) = (take("input"), take("accept"), take("s_max"));
        let accept: Option<Vec<String>> = serde_json::from_value(accept)?;
        let s_max: Option<u32> = serde_json::from_value(s_max)?;
        Ok(Self {
            input: serde_json::from_value(input)?,
            accept: accept.unwrap_or_default(),
            s_max: s_max.unwrap_or(S_MAX),
            step: serde_json::from_value(Value::Object(members))?,
        })
    }
}

/// What an action does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Sends a command to the monitors.
    Monitor(Map<String, Value>),
    /// Sends commands to the monitors at the same time, which then share their rounds of agreement.
    MonitorAtOnce(Vec<Map<String, Value>>),
    /// Waits until a file system has its active metadata servers, and its standby ones.
    WaitForMetadataServers {
        /// The name of the file system.
        file_system: String,
        /// The number of active servers.
        active: usize,
        /// The number of standby servers.
        #[serde(default)]
        standby: usize,
    },
    /// Waits until storage daemons are up.
    WaitForStorage {
        /// Their number.
        daemons: u64,
    },
    /// Waits until a storage daemon is down: others reported that it does not answer.
    WaitForStorageLoss {
        /// Its number.
        daemon: u64,
    },
    /// Writes down the placement groups that a storage daemon alone has.
    NoteLostGroups {
        /// Its number.
        daemon: u64,
        /// How many storage daemons the cluster began with.
        daemons: u64,
        /// The pool that new files get instead.
        new_pool: String,
    },
    /// Lets a mount of this node fail reads and writes of the groups that were written down last.
    TellMount {
        /// The mount point.
        mount: PathBuf,
        /// What a mount that is started later reads.
        file: PathBuf,
    },
    /// Puts the addresses of a mount that died on the block list: nobody waits for what it had in use.
    BlockMount {
        /// The file in which the mount wrote them. Without it nothing is done.
        addresses: PathBuf,
    },
    /// Orders new groups without data in place of those that were written down last.
    ReplaceLostGroups,
    /// Waits until the storage daemons have made all groups of all pools, but not for long: one of the daemons may
    /// have ended, too.
    WaitForGroups {
        /// The time to wait, in seconds. After it the next action begins all the same.
        s_max: u32,
    },
    /// Creates a directory and its missing parents, and gives it mode and owner.
    MakeDirectory {
        /// The path below the root of the file system.
        path: String,
        /// The permission bits.
        mode: u32,
        /// The owner.
        uid: u32,
        /// The group.
        gid: u32,
    },
    /// Sets an attribute of a file or directory.
    SetAttribute {
        /// The path below the root of the file system.
        path: String,
        /// The name of the attribute.
        name: String,
        /// Its value.
        value: String,
    },
    /// Reads an attribute of a file or directory.
    Attribute {
        /// The path below the root of the file system.
        path: String,
        /// The name of the attribute.
        name: String,
    },
}

impl Step {
    /// The name of the action in messages.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Monitor(command) => format!("the command \"{}\"", prefix(command)),
            Self::MonitorAtOnce(commands) => {
                let first = commands.first().map(prefix).unwrap_or_default();
                format!("{} commands as \"{first}\"", commands.len())
            }
            Self::WaitForMetadataServers { file_system, .. } => {
                format!("the wait for the metadata servers of {file_system}")
            }
            Self::WaitForStorage { daemons } => format!("the wait for {daemons} storage daemons"),
            Self::WaitForStorageLoss { daemon } => {
                format!("the wait for the loss of storage daemon {daemon}")
            }
            Self::NoteLostGroups { daemon, .. } => {
                format!("the list of what storage daemon {daemon} has")
            }
            Self::TellMount { mount, .. } => {
                format!("the list of lost data for {}", mount.display())
            }
            Self::BlockMount { addresses } => {
                format!("the block of the addresses in {}", addresses.display())
            }
            Self::ReplaceLostGroups => "the replacement of lost data".to_owned(),
            Self::WaitForGroups { .. } => "the wait for new groups".to_owned(),
            Self::MakeDirectory { path, .. } => format!("the creation of directory {path}"),
            Self::SetAttribute { path, name, .. } => format!("the change of {name} of {path}"),
            Self::Attribute { path, name } => format!("the query of {name} of {path}"),
        }
    }
}

/// The name of a command to the monitors.
pub(crate) fn prefix(command: &Map<String, Value>) -> &str {
    command.get("prefix").and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"config": "/c", "keyring": "/k", "actions": [
        {"monitor": {"prefix": "osd new", "uuid": "u"}, "input": "text", "accept": ["EEXIST"], "s_max": 5},
        {"wait_for_storage": {"daemons": 2}},
        {"make_directory": {"path": "/a", "mode": 448, "uid": 1, "gid": 2}}]}"#;

    #[test]
    fn actions_are_read_and_written() {
        let actions: Actions = serde_json::from_str(TEXT).unwrap();
        assert_eq!(actions.connection.name, "client.admin");
        assert_eq!(actions.actions[0].accept, ["EEXIST"]);
        assert_eq!((actions.actions[0].s_max, actions.actions[1].s_max), (5, S_MAX));
        assert_eq!(actions.actions[1], Step::WaitForStorage { daemons: 2 }.into());
        let again = serde_json::to_string(&actions).unwrap();
        assert_eq!(serde_json::from_str::<Actions>(&again).unwrap(), actions);
    }

    #[test]
    fn unknown_members_of_an_action_are_refused() {
        for wrong in [
            r#"{"wait_for_storage": {"daemons": 2}, "acept": []}"#,
            r#"{"wait_for_storage": {"daemons": 2, "more": 1}}"#,
            r#"{"wait_for_storage": {"daemons": 2}, "monitor": {}}"#,
            r#"{"s_max": 3}"#,
        ] {
            assert!(serde_json::from_str::<Action>(wrong).is_err(), "{wrong}");
        }
    }
}
