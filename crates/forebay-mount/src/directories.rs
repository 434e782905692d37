//! Lists directories. A list is continued where the last answer ended, however small the answers are.

use parking_lot::Mutex;

use crate::error::Errno;
use crate::opened::Directory;
use crate::protocol::{Answer, DirectoryEntry, Request};
use crate::reply::{Outcome, Result};
use crate::server::Server;

/// An open directory, and where its list is.
pub(crate) struct Listing {
    directory: Directory,
    /// The place of the next name.
    place: u64,
    /// A name that was read and did not fit into the last answer.
    unsent: Option<DirectoryEntry>,
    /// Ended the last answer. libcephfs takes the list for complete afterwards.
    failure: Option<Errno>,
}

impl Listing {
    /// The names from `place` on, as many as fit.
    fn names(&mut self, place: u64, bytes_max: usize) -> Result<Answer> {
        if place != self.place || place == 0 {
            self.directory.seek(place);
            self.place = place;
            self.unsent = None;
            self.failure = None;
        }
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let mut answer = Answer::default();
        loop {
            let next = match self.unsent.take() {
                Some(found) => Some(found),
                None => match self.directory.next() {
                    // Names that were read before are sent first.
                    Err(failure) if !answer.0.is_empty() => {
                        self.failure = Some(failure);
                        break;
                    }
                    next => next?,
                },
            };
            let Some(found) = next else { break };
            if !answer.add_name(&found, bytes_max) {
                self.unsent = Some(found);
                break;
            }
            self.place = found.next;
        }
        Ok(answer)
    }
}

impl Server {
    pub(crate) fn open_directory(&self, request: &Request) -> Result {
        let directory = self.client.open_directory(request.node, &self.caller_identity(request))?;
        let listing = Listing { directory, place: 0, unsent: None, failure: None };
        let number = self.directories.add(Mutex::new(listing));
        Ok(Outcome::Fields(Answer::opened_directory(number)))
    }

    pub(crate) fn read_directory(&self, request: &mut Request) -> Result {
        let body = &mut request.body;
        let (directory, place, size) = (body.u64()?, body.u64()?, body.u32()?);
        let listing = self.directories.get(directory)?;
        let answer = listing.lock().names(place, size as usize)?;
        Ok(Outcome::Fields(answer))
    }

    pub(crate) fn close_directory(&self, request: &mut Request) -> Result {
        self.directories.remove(request.body.u64()?)?;
        Ok(Outcome::Empty)
    }
}
