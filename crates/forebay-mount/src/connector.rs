//! Connects clients to the servers, and writes down the addresses of all.

use std::path::PathBuf;

use forebay_ceph::{Connection, MountAddresses, PreloadFunctions};
use forebay_host::files;
use forebay_host::process::Identity;
use parking_lot::Mutex;

use crate::client::Client;
use crate::error::{Errno, Error};

pub(crate) struct Connector {
    connection: Connection,
    root: String,
    /// Where to write the addresses.
    file: Option<PathBuf>,
    addresses: Mutex<Vec<String>>,
}

impl Connector {
    pub(crate) fn new(connection: Connection, root: String, file: Option<PathBuf>) -> Self {
        Self { connection, root, file, addresses: Mutex::default() }
    }

    /// A new client, which can be put on the block list if this process dies.
    pub(crate) fn connect(&self) -> Result<Client, Error> {
        let connection = &self.connection;
        let connect_s_max = connection.connect_s_max.max(1).to_string();
        let keyring = connection.keyring.display().to_string();
        let settings = [
            ("keyring", keyring.as_str()),
            ("client_mount_timeout", connect_s_max.as_str()),
            ("log_file", ""),
            ("admin_socket", ""),
            // Without the preload library a write may never return once another node writes the file.
            ("client_oc", if PreloadFunctions::find().is_some() { "true" } else { "false" }),
        ];
        let client = Client::mount(connection, &settings, &self.root)?;
        match self.write_addresses(&client) {
            Ok(()) => Ok(client),
            Err(error) => {
                client.unmount().ok(); // the first error counts
                Err(error)
            }
        }
    }

    fn write_addresses(&self, client: &Client) -> Result<(), Error> {
        let Some(file) = &self.file else { return Ok(()) };
        let mut all = self.addresses.lock();
        all.extend(client.addresses().map_err(|failure| self.cannot_mount(failure))?);
        let ours = MountAddresses { process: Identity::ours()?, addresses: all.clone() };
        Ok(files::write_json(file, &file.with_extension("fresh"), &ours)?)
    }

    pub(crate) fn cannot_mount(&self, failure: Errno) -> Error {
        Error::Mount {
            root: self.root.clone(),
            config: self.connection.config.clone(),
            source: std::io::Error::from_raw_os_error(failure.0),
        }
    }
}
