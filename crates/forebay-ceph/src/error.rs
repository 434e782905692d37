//! The errors, with the remedy that each one has.

use std::path::PathBuf;

use nix::errno::Errno;

/// A monitor refused a command.
#[derive(Debug, thiserror::Error)]
#[error("{}: {message}", name_of(*errno))]
pub struct CommandError {
    /// The error number, positive.
    pub errno: i32,
    /// What the monitor said.
    pub message: String,
}

impl CommandError {
    /// The name of the error number, as in `EEXIST`.
    #[must_use]
    pub fn name(&self) -> String {
        name_of(self.errno)
    }
}

/// What failed between Forebay and a Ceph cluster.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A library is missing or cannot be loaded.
    #[error("cannot load {library}: {reason}")]
    Library {
        /// The name or path of the library.
        library: String,
        /// The Debian package that has it.
        package: &'static str,
        /// What the loader said.
        reason: String,
    },
    /// A text for a C function contains a zero byte.
    #[error("{0:?} contains a zero byte")]
    ZeroByte(String),
    /// The library refused the configuration.
    #[error("cannot use {what} for a connection to Ceph: {}", name_of(*errno))]
    Configuration {
        /// The file or option.
        what: String,
        /// The error number.
        errno: i32,
    },
    /// No connection within the limit, or the monitors refused it.
    #[error("cannot connect to {what} of {config} as {name} (limit {s_max} s): {}", name_of(*errno))]
    Connect {
        /// The monitors or the file system.
        what: &'static str,
        /// The configuration file.
        config: PathBuf,
        /// The name of the client.
        name: String,
        /// The limit in seconds.
        s_max: u32,
        /// The error number.
        errno: i32,
    },
    /// A monitor refused a command.
    #[error("the monitor refused \"{prefix}\": {error}")]
    Command {
        /// The name of the command.
        prefix: String,
        /// What the monitor answered.
        error: CommandError,
    },
    /// An operation on the file system failed.
    #[error("cannot {operation} {path} on CephFS: {}", name_of(*errno))]
    FileSystem {
        /// The operation, as a verb.
        operation: &'static str,
        /// The path below the root of the file system.
        path: String,
        /// The error number.
        errno: i32,
    },
    /// What a monitor answered is not what this version understands.
    #[error("the answer of the monitor to \"{prefix}\" is not understood: {reason}")]
    Answer {
        /// The name of the command.
        prefix: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The layout of a file is not what this version understands.
    #[error("the layout of a file is not understood: {0}")]
    Layout(String),
    /// An action did not complete within its limit.
    #[error("{action} did not complete within {s_max} s{}", seen(state.as_ref()))]
    Limit {
        /// The action.
        action: String,
        /// The limit in seconds.
        s_max: u32,
        /// The last state that was seen.
        state: Option<String>,
    },
    /// The operating system failed.
    #[error(transparent)]
    Host(#[from] forebay_host::Error),
}

impl Error {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Library { package, .. } => Some(format!(
                "install the package {package}, or name the directory of an engine bundle that has it"
            )),
            Self::ZeroByte(_) => Some("remove the zero byte".to_owned()),
            Self::Configuration { .. } => Some(
                "check that the file exists, is readable, and is a Ceph configuration".to_owned(),
            ),
            Self::Connect { errno, config, .. } => Some(match Errno::from_raw(*errno) {
                Errno::ETIMEDOUT => format!(
                    "check that the daemons run and that \"mon host\" in {} is their address",
                    config.display()
                ),
                Errno::EACCES => {
                    "the key in the keyring is not the cluster's key of this name".to_owned()
                }
                Errno::EPERM => {
                    "use a key with the capability mds 'allow *': this one may not see the root"
                        .to_owned()
                }

                Errno::ENOENT => {
                    "the keyring has no key of this name, or the cluster no file system".to_owned()
                }
                _ => "the logs of the monitors say more".to_owned(),
            }),
            Self::Command { error, .. } => match Errno::from_raw(error.errno) {
                Errno::ETIMEDOUT => Some("check that a majority of the monitors runs".to_owned()),
                Errno::EACCES | Errno::EPERM => {
                    Some("use a key with the capability mon 'allow *'".to_owned())
                }
                _ => None,
            },
            Self::FileSystem { errno, .. } => match Errno::from_raw(*errno) {
                Errno::EACCES | Errno::EPERM => {
                    Some("use a key with the capability mds 'allow *'".to_owned())
                }
                _ => None,
            },
            Self::Answer { .. } | Self::Layout(_) => Some(
                "use a version of Ceph that this version of Forebay was tested with".to_owned(),
            ),
            Self::Limit { .. } => Some(
                "the logs of the daemons say what they wait for; raise the limit if they are slow"
                    .to_owned(),
            ),
            Self::Host(error) => error.hint().map(str::to_owned),
        }
    }
}

/// The last state, for the end of a message.
fn seen(state: Option<&String>) -> String {
    state.map_or_else(String::new, |state| format!("; last seen: {state}"))
}

/// The name of an error number, as in `EEXIST`.
pub(crate) fn name_of(errno: i32) -> String {
    match Errno::from_raw(errno) {
        Errno::UnknownErrno => format!("error {errno}"),
        known => format!("{known:?}"),
    }
}
