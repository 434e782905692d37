//! A second client of this process, which renames over a file that has other names.
//!
//! A client of libcephfs forgets all names of a file that its rename replaces, as soon as the rename is in the journal.
//! Then it says of the file's other names that they do not exist (Ceph 16.2.15). What another client renames, it hears
//! from the servers. This one connects when it is first needed, and never opens a file.

use std::ffi::CStr;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::client::{Client, Identity};
use crate::connector::Connector;
use crate::error::Errno;

pub(crate) struct SecondClient {
    connector: Arc<Connector>,
    /// One operation at a time.
    client: Mutex<Option<Client>>,
}

/// A directory as the second client knows it.
struct Known<'a> {
    client: &'a Client,
    node: u64,
}

impl Drop for Known<'_> {
    fn drop(&mut self) {
        self.client.forget(self.node, 1);
    }
}

impl SecondClient {
    pub(crate) fn new(connector: Arc<Connector>) -> Self {
        Self { connector, client: Mutex::default() }
    }

    /// As [`Client::rename`], and waits until it is in the journal: fsync of the directory asks the first client only. The
    /// directories are inode numbers. None: there is no connection.
    pub(crate) fn rename(
        &self,
        from: (u64, &CStr),
        to: (u64, &CStr),
        who: &Identity,
    ) -> Option<Result<(), Errno>> {
        let mut client = self.client.lock();
        let renamed = rename(self.connected(&mut client)?, from, to, who);
        if renamed != Err(Errno(libc::ENOENT)) {
            return Some(renamed);
        }
        // It may have forgotten the name by a rename of its own, as the first one would.
        client.take()?.unmount().ok()?;
        Some(rename(self.connected(&mut client)?, from, to, who))
    }

    pub(crate) fn unmount(&self) -> Result<(), Errno> {
        self.client.lock().take().map_or(Ok(()), |client| client.unmount())
    }

    fn connected<'a>(&self, client: &'a mut Option<Client>) -> Option<&'a Client> {
        if client.is_none() {
            *client = self.connector.connect().inspect_err(|error| eprintln!("{error}")).ok();
        }
        client.as_ref()
    }
}

fn rename(
    client: &Client,
    (directory, name): (u64, &CStr),
    (new_directory, new_name): (u64, &CStr),
    who: &Identity,
) -> Result<(), Errno> {
    let known = |ino| client.lookup_inode(ino).map(|node| Known { client, node });
    let (directory, new_directory) = (known(directory)?, known(new_directory)?);
    client.rename((directory.node, name), (new_directory.node, new_name), who)?;
    client.sync_node(new_directory.node, false)
}
