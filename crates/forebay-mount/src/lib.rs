//! A FUSE client of CephFS: translates requests of the kernel into calls of libcephfs, which is loaded at run time.
//!
//! Strict on all nodes: the kernel caches neither data nor names, appends of several nodes follow each other, and locks
//! exclude processes of all nodes. Pages of a shared mapping are coherent on their node, and written back by msync,
//! munmap and close. Keeps no data itself.
//!
//! A program can ask for lazy I/O of a file (`ioctl`): then CephFS's client buffers and caches although several nodes
//! have the file open, until the program syncs.

mod announcements;
mod append;
mod attributes;
mod client;
mod directories;
mod error;
mod files;
mod handles;
mod inodes;
mod ioctl;
mod layouts;
mod lazy_file;
mod lock_requests;
mod locks;
mod lost_data;
mod memory;
mod open_file;
mod open_inode;
mod opened;
mod protocol;
mod ranges;
mod read_ahead;
mod regular_reads;
mod reply;
mod server;
mod session;
mod walked;

use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::Duration;

use forebay_ceph::{Connection, LostGroups, MountAddresses, PreloadFunctions};
use forebay_host::fuse::FuseDevice;
use forebay_host::process::{Identity, SignalGuard};
use forebay_host::{clock, mounts, threads};

pub use error::Error;
pub use layouts::{Layouts, NamedLayout};

use client::Client;
use error::Failure;
use lost_data::LostData;
use server::Server;
use session::Session;

/// The kind in the list of mounts: `fuse.forebay-mount`.
pub const KIND: &str = "forebay-mount";
/// How long requests on their way may take at the end, and then the servers.
const LAST_REQUESTS_MAX: Duration = Duration::from_secs(1);
const END_MAX: Duration = Duration::from_secs(8);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// What to mount.
#[derive(Debug, Clone)]
pub struct MountOptions {
    /// The cluster.
    pub connection: Connection,
    /// The directory in the file system.
    pub root: String,
    /// The layouts of new files and directories.
    pub layouts: Layouts,
    /// The file that says which data are lost; without a file, none are.
    pub lost_groups: Option<PathBuf>,
    /// The file to write the addresses of this client to, for the block list after its death.
    pub addresses: Option<PathBuf>,
    /// The directory that shows it.
    pub point: PathBuf,
}

/// Mounts, and serves until the mount is detached or a signal requests a stop. The process should end afterwards
/// without the cleanup of libcephfs, whose threads may still run.
///
/// # Errors
/// If the mount cannot be made.
pub fn serve(options: &MountOptions) -> Result<(), Error> {
    memory::keep_freed();
    let connect_s_max = options.connection.connect_s_max.max(1).to_string();
    let keyring = options.connection.keyring.display().to_string();
    let settings = [
        ("keyring", keyring.as_str()),
        ("client_mount_timeout", connect_s_max.as_str()),
        ("log_file", ""),
        ("admin_socket", ""),
        // Without the preload library a write may never return once another node writes the file.
        ("client_oc", if PreloadFunctions::find().is_some() { "true" } else { "false" }),
    ];
    let events = SignalGuard::listen()?.watch(None)?;
    let client = Client::mount(&options.connection, &settings, &options.root)?;
    if let Some(file) = &options.addresses {
        let failed = |failure| cannot_mount(options, failure);
        let addresses = client.addresses().map_err(failed)?;
        let ours = MountAddresses { process: Identity::ours()?, addresses };
        forebay_host::files::write_json(file, &file.with_extension("fresh"), &ours)?;
    }
    let lost = options.lost_groups.as_deref().map(LostGroups::read).transpose()?;
    let lost = LostData::new(lost.unwrap_or_default());
    let server = Server::new(client, options.point.clone(), options.layouts.clone(), lost);
    let server = server.map_err(|failure| cannot_mount(options, failure))?;
    let device = FuseDevice::mount(&options.point, KIND)?;
    let session = Session::new(server, device, events.sender());
    session.start()?;
    let has_ended = || session.has_ended().then_some(());
    if events.wait_until(has_ended).is_none() {
        mounts::detach_fuse(&options.point)?;
        let began = clock::now();
        // Requests that take longer fail.
        while !session.has_ended() && began.elapsed() < LAST_REQUESTS_MAX {
            clock::sleep(POLL_INTERVAL);
        }
    }
    session.server().read_ahead.end();
    let (sender, unmounted) = channel();
    threads::spawn(move || sender.send(session.server().client.unmount()).ok())?;
    match unmounted.recv_timeout(END_MAX) {
        Ok(Ok(())) => {}
        Ok(Err(failure)) => eprintln!("the file system was left with error {}", failure.0),
        Err(_) => eprintln!("the servers did not answer within {} s", END_MAX.as_secs()),
    }
    Ok(())
}

fn cannot_mount(options: &MountOptions, failure: Failure) -> Error {
    Error::Mount {
        root: options.root.clone(),
        config: options.connection.config.clone(),
        source: std::io::Error::from_raw_os_error(failure.0),
    }
}
