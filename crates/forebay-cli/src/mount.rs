//! `forebay __mount`: a FUSE client of CephFS, for the mounts of an engine's plan.
//! May start the process again under the loader of a bundle.
//! Never returns: the process ends without the clean-up of libcephfs, which could wait for servers.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use forebay_ceph::Connection;
use forebay_host::process;
use forebay_mount::{Error, Layouts, MountOptions, NamedLayout, serve};
use forebay_terminal::CliError;

use crate::ceph::through_own_loader;

/// How long the servers may take to answer, in seconds. A metadata server waits for 30 s and its next look (5 s) for
/// what a mount that died had in use.
const CONNECT_S_MAX: u32 = 50;

#[derive(Debug, Args)]
pub struct MountArguments {
    /// The configuration of the cluster
    #[arg(long)]
    config: PathBuf,
    /// The file with the key
    #[arg(long)]
    keyring: PathBuf,
    /// The name of the client
    #[arg(long)]
    name: String,
    /// The directory in the file system
    #[arg(long)]
    root: String,
    /// Where libcephfs is; without it, where the loader looks
    #[arg(long)]
    libraries: Option<PathBuf>,
    /// The layout of new files with such names, as names:striped:BYTES:PATTERN; also directories and local
    #[arg(long)]
    layout: Vec<NamedLayout>,
    /// The pool of files that stay on this node
    #[arg(long)]
    local_pool: Option<String>,
    /// The file that says which data are lost, as forebay_ceph::Losses
    #[arg(long)]
    lost_groups: Option<PathBuf>,
    /// The file to write the addresses of this client to, for the block list after its death
    #[arg(long)]
    addresses: Option<PathBuf>,
    /// The directory that shows it
    point: PathBuf,
}

/// Mounts, serves until the mount ends, and ends the process with the exit code.
pub fn mount(arguments: &MountArguments) -> ! {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let words: Vec<_> = words.iter().map(AsRef::as_ref).collect();
    let options = MountOptions {
        connection: Connection {
            config: arguments.config.clone(),
            keyring: arguments.keyring.clone(),
            name: arguments.name.clone(),
            library_directory: arguments.libraries.clone(),
            connect_s_max: CONNECT_S_MAX,
        },
        root: arguments.root.clone(),
        layouts: Layouts {
            named: arguments.layout.clone(),
            local_pool: arguments.local_pool.clone(),
        },
        lost_groups: arguments.lost_groups.clone(),
        addresses: arguments.addresses.clone(),
        point: arguments.point.clone(),
    };
    let served = through_own_loader(arguments.libraries.as_deref(), &words)
        .and_then(|()| serve(&options).map_err(|error| failed(&error)));
    let code = match served {
        Ok(()) => 0,
        Err(error) => error.print(),
    };
    // Threads of the library may still run: their cleanup could wait for servers.
    process::exit_at_once(code)
}

fn failed(error: &Error) -> CliError {
    CliError { hint: error.hint(), ..CliError::new(error.to_string()) }
}
