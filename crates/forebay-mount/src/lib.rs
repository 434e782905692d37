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
mod connector;
mod directories;
mod error;
mod files;
mod handles;
mod inodes;
mod ioctl;
mod last_lookups;
mod layouts;
mod lazy_file;
mod lock_requests;
mod locks;
mod lost_data;
mod memory;
mod moves;
mod open_file;
mod open_inode;
mod opened;
mod protocol;
mod ranges;
mod read_ahead;
mod regular_reads;
mod reply;
mod second_client;
mod server;
mod session;
mod walked;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use forebay_ceph::{Connection, Losses};
use forebay_host::fuse::FuseDevice;
use forebay_host::process::SignalGuard;
use forebay_host::{clock, mounts, threads};

pub use error::Error;
pub use layouts::{Layouts, NamedLayout};

use connector::Connector;
use second_client::SecondClient;
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
    /// The file to write the addresses of this mount's clients to, for the block list after its death.
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
    let events = SignalGuard::listen()?.watch(None)?;
    let MountOptions { connection, root, addresses, .. } = options.clone();
    let connector = Arc::new(Connector::new(connection, root, addresses));
    let client = connector.connect()?;
    let second = SecondClient::new(Arc::clone(&connector));
    let places = (options.point.clone(), options.layouts.clone());
    let server = Server::new((client, second), places);
    let server = server.map_err(|failure| connector.cannot_mount(failure))?;
    let device = FuseDevice::mount(&options.point, KIND)?;
    let session = Session::new(server, device, events.sender());
    // From now on the agent reaches this mount. What it sent to the mount point before is in the file.
    if let Some(file) = &options.lost_groups {
        session.server().inodes.lost.add(Losses::read(file)?);
    }
    session.start()?;
    let has_ended = || session.has_ended().then_some(());
    let mut detached = Ok(());
    if events.wait_until(has_ended).is_none() {
        detached = mounts::detach_fuse(&options.point);
        let began = clock::now();
        // Requests that take longer fail.
        while !session.has_ended() && began.elapsed() < LAST_REQUESTS_MAX {
            clock::sleep(POLL_INTERVAL);
        }
    }
    // Whatever failed before, what is buffered is written back.
    session.server().read_ahead.end();
    let (sender, unmounted) = channel();
    threads::spawn(move || sender.send(session.server().unmount()).ok())?;
    match unmounted.recv_timeout(END_MAX) {
        Ok(Ok(())) => {}
        Ok(Err(failure)) => eprintln!("the file system was left with error {}", failure.0),
        Err(_) => eprintln!("the servers did not answer within {} s", END_MAX.as_secs()),
    }
    Ok(detached?)
}
