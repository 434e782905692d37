//! One lock for each token: of the calls that make or remove an allocation, one runs at a time.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use forebay_host::{clock, files};

use forebay_site::{Error, Site};

const DIRECTORY: &str = "locks";
/// Slurm ends a call after 300 s.
const WAIT: Duration = Duration::from_secs(120);
const INTERVAL: Duration = Duration::from_millis(50);

/// A lock, until it is dropped. The kernel drops it when the process is killed.
pub(crate) struct TokenLock {
    _file: File,
    path: PathBuf,
}

impl TokenLock {
    /// Waits for the lock of a token.
    ///
    /// # Errors
    /// If another call holds it for [`WAIT`], or the state directory cannot be written.
    pub(crate) fn take(site: &Site, token: &str) -> Result<Self, Error> {
        let directory = site.state.join(DIRECTORY);
        files::make_directories(&directory, 0o700)?;
        let path = directory.join(token);
        let deadline = clock::now() + WAIT;
        loop {
            if let Some(file) = files::lock_or_create(&path)? {
                return Ok(Self { _file: file, path });
            }
            if clock::now() > deadline {
                let message = format!("another call for {token} has run for {} s", WAIT.as_secs());
                return Err(Error::new(message).with_hint("it will be tried again"));
            }
            clock::sleep(INTERVAL);
        }
    }

    /// Removes the file of the lock: the token is not used any more.
    pub(crate) fn discard(self) -> Result<(), Error> {
        Ok(files::remove_if_present(&self.path)?)
    }
}
