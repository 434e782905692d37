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
use crate::error::Failure;

pub(crate) struct SecondClient {
    connector: Arc<Connector>,
    connected: Mutex<Option<Arc<Client>>>,
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
        Self { connector, connected: Mutex::default() }
    }

    /// As [`Client::rename`]. The directories are inode numbers.
    pub(crate) fn rename(
        &self,
        (directory, name): (u64, &CStr),
        (new_directory, new_name): (u64, &CStr),
        who: &Identity,
    ) -> Result<(), Failure> {
        let client = self.client()?;
        let known = |ino| client.lookup_inode(ino).map(|node| Known { client: &client, node });
        let (directory, new_directory) = (known(directory)?, known(new_directory)?);
        client.rename((directory.node, name), (new_directory.node, new_name), who)
    }

    pub(crate) fn unmount(&self) -> Result<(), Failure> {
        let client = self.connected.lock().take();
        client.map_or(Ok(()), |client| client.unmount())
    }

    fn client(&self) -> Result<Arc<Client>, Failure> {
        let mut connected = self.connected.lock();
        if let Some(client) = &*connected {
            return Ok(Arc::clone(client));
        }
        let client = self.connector.connect().map_err(|error| {
            eprintln!("{error}");
            Failure(libc::EIO)
        })?;
        Ok(Arc::clone(connected.insert(Arc::new(client))))
    }
}
