//! What a client of a cluster has to know.

use std::ffi::CString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::Error;

/// How to connect to a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// The configuration file; its `mon host` are the monitors.
    pub config: PathBuf,
    /// The file with the key of `name`.
    pub keyring: PathBuf,
    /// The name of the client, as in `client.admin`.
    #[serde(default = "default_name")]
    pub name: String,
    /// Where the libraries are; without it, where the loader looks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library_directory: Option<PathBuf>,
    /// How long a monitor may take to answer, in seconds.
    #[serde(default = "default_connect_s_max")]
    pub connect_s_max: u32,
}

fn default_name() -> String {
    "client.admin".to_owned()
}

fn default_connect_s_max() -> u32 {
    20
}

impl Connection {
    /// The name without its type, as libcephfs wants it.
    #[must_use]
    pub fn id(&self) -> &str {
        self.name.strip_prefix("client.").unwrap_or(&self.name)
    }

    /// The options that follow from the connection. A limit in the file does not count. The client writes
    /// no log and no socket, for whose names the file may give the places of the daemons.
    pub(crate) fn options(&self) -> Vec<(&'static str, String)> {
        let s_max = self.connect_s_max.max(1).to_string();
        let mut options = vec![("keyring", self.keyring.display().to_string())];
        for limit in LIMITS {
            options.push((limit, s_max.clone()));
        }
        for nothing in ["log_file", "admin_socket"] {
            options.push((nothing, String::new()));
        }
        for off in ["log_to_stderr", "err_to_stderr"] {
            options.push((off, "false".to_owned()));
        }
        options
    }
}

/// Ceph's options that end a wait for a monitor, or for a metadata server at the end.
const LIMITS: [&str; 3] =
    ["client_mount_timeout", "rados_mon_op_timeout", "client_shutdown_timeout"];

/// A text for a C function.
///
/// # Errors
/// If it contains a zero byte.
pub fn c_text(text: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| Error::ZeroByte(text.to_owned()))
}
