//! Ceph's block list: a client whose address is on it can use no server any more, and no server waits for it.

use std::path::Path;

use forebay_host::files;
use forebay_host::process::Identity;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::Error;
use crate::monitors::Monitors;
use crate::questions::{ask_at_once, command};

/// What a mount writes down about itself.
#[derive(Debug, Serialize, Deserialize)]
pub struct MountAddresses {
    /// Its process.
    pub process: Identity,
    /// The addresses that servers know it by, as `IP:PORT/NONCE`.
    pub addresses: Vec<String>,
}

/// Puts the addresses on the list that a mount wrote to a file. A mount that runs is left alone: it may be the one that
/// replaces the dead one.
pub(crate) fn block_mount(monitors: &Monitors, file: &Path) -> Result<Value, Error> {
    let mount: MountAddresses = match files::read_json(file) {
        Err(error) if error.is_not_found() => return Ok(Value::Null), // it died before it was mounted
        read => read?,
    };
    if mount.process.is_alive() {
        return Ok(Value::Null);
    }
    let add = |address: &String| {
        command(json!({"prefix": "osd blocklist", "blocklistop": "add", "addr": address}))
    };
    ask_at_once(monitors, &mount.addresses.iter().map(add).collect::<Vec<_>>())
}
