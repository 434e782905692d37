//! How hosts know who sent a message: by MUNGE, or where a site has none, by a secret that its hosts share.
//! Assumes that the receiver of a request calls `reject_replay`: with a secret, `decode` takes a repeated line.
//! A secret signs the content, and never encrypts it.

use crate::munge::Munge;
use crate::secret::Secret;
use crate::{Error, Site};

/// The program that signs messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// A program of the control host, which sends requests as SlurmUser.
    Control,
    /// The daemon of a node, which sends answers as root.
    Node,
}

/// A message and the user who sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The content.
    pub content: Vec<u8>,
    /// The user's ID.
    pub user: u32,
    /// Why it does not count, although it is true: it is too old or from the future.
    pub clock_error: Option<String>,
    /// Its time and its nonce, where the receiver must remember them.
    pub(crate) stamp: Option<(u64, String)>,
}

/// What signs messages and checks them.
pub enum Auth {
    /// Credentials of MUNGE.
    Munge(Munge),
    /// A secret of the site.
    Secret(Secret),
}

impl Auth {
    /// What the site configures, for a program of this side.
    ///
    /// # Errors
    /// If the library of MUNGE is not installed, or the file of the secret cannot be used.
    pub fn of(site: &Site, side: Side) -> Result<Self, Error> {
        match &site.secret {
            None => Munge::load(site.munge_socket.as_deref()).map(Self::Munge),
            Some(file) => Secret::load(file, &site.slurm_user, side).map(Self::Secret),
        }
    }

    /// A line that tells the content and who sent it. With MUNGE, only `reader` and root can read it.
    ///
    /// # Errors
    /// If munged does not answer, or the content is too long for it.
    pub fn encode(&self, content: &[u8], reader: u32) -> Result<Vec<u8>, Error> {
        match self {
            Self::Munge(munge) => munge.encode(content, reader).map(String::into_bytes),
            Self::Secret(secret) => secret.encode(content),
        }
    }

    /// The content of a line and its sender.
    ///
    /// # Errors
    /// If munged does not answer, or the line is false. With MUNGE, also if it was decoded before.
    pub fn decode(&self, line: &[u8]) -> Result<Message, Error> {
        match self {
            Self::Munge(munge) => munge.decode(line),
            Self::Secret(secret) => secret.decode(line),
        }
    }

    /// The same of a line that must be of now.
    ///
    /// # Errors
    /// As [`Auth::decode`], or if it is too old or from the future.
    pub fn decode_of_now(&self, line: &[u8]) -> Result<Message, Error> {
        let message = self.decode(line)?;
        match &message.clock_error {
            Some(error) => Err(clock_error(error)),
            None => Ok(message),
        }
    }

    /// Refuses a message that came before. munged has refused it already.
    ///
    /// # Errors
    /// If it came before, or may have come before this program started.
    pub fn reject_replay(&self, message: &Message) -> Result<(), Error> {
        match (self, &message.stamp) {
            (Self::Secret(secret), Some((time_ms, nonce))) => secret.reject_replay(*time_ms, nonce),
            _ => Ok(()),
        }
    }

    /// What a sender with another secret is answered, so that it can say so. Anybody could send it.
    pub fn refusal(&self) -> Option<&'static [u8]> {
        match self {
            Self::Munge(_) => None,
            Self::Secret(_) => Some(b"not signed with the secret of this host"),
        }
    }
}

/// What to do about clocks.
pub fn clock_error(what: &str) -> Error {
    Error::new(what).with_hint("compare date on the control host and the node, and start chronyd")
}
