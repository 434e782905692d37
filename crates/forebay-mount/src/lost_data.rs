//! Data that were lost with storage daemons. Reads and writes there fail with EIO; new files are placed elsewhere, and a
//! file that was emptied since is whole again. The node's agent says what is lost, before Ceph replaces it by nothing.

use std::ffi::CStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_ceph::Losses;
use parking_lot::RwLock;

use crate::client::Client;
use crate::error::Errno;

/// The attribute of a file that was emptied after a loss: the pool for new files since that loss.
const EMPTIED: &CStr = c"user.forebay.emptied";
/// The longest name of a pool that is looked at.
const POOL_BYTES_MAX: usize = 64;

/// What is lost.
#[derive(Default)]
pub(crate) struct LostData {
    /// One load for each read and write while nothing is.
    is_any: AtomicBool,
    /// Taken out for each look: a look asks servers, and what is lost next must not wait for it.
    losses: RwLock<Arc<Losses>>,
}

impl LostData {
    /// Adds what the agent says.
    pub(crate) fn add(&self, more: Losses) {
        if more.is_empty() {
            return;
        }
        Arc::make_mut(&mut self.losses.write()).add_all(more);
        self.is_any.store(true, Ordering::Release);
    }

    pub(crate) fn is_any(&self) -> bool {
        self.is_any.load(Ordering::Acquire)
    }

    /// Fails if data of a file were lost, of `length` bytes from `offset` on; none: up to its end.
    pub(crate) fn check(
        &self,
        client: &Client,
        node: u64,
        offset: u64,
        length: Option<u64>,
    ) -> Result<(), Errno> {
        if !self.is_any() {
            return Ok(());
        }
        let layout = client.layout(node)?;
        let losses = self.losses();
        if !losses.has_pool(&layout.pool) {
            return Ok(()); // made since
        }
        let length = match length {
            Some(length) => length,
            None => client.size(node)?.saturating_sub(offset),
        };
        let (file, part) = ((client.ino(node)?, &layout), (offset, length));
        let is_lost = losses.has(file, part, None)
            && losses.has(file, part, emptied(client, node).as_deref());
        if is_lost { Err(Errno(libc::EIO)) } else { Ok(()) }
    }

    /// Notes that a file was emptied: what is written to it from now on is not lost.
    pub(crate) fn note_emptied(&self, client: &Client, node: u64) -> Result<(), Errno> {
        match self.pool_instead(client, node) {
            Some(pool) => client.set_own_attribute(node, EMPTIED, pool.as_bytes()),
            None => Ok(()),
        }
    }

    /// The pool for a new file, if that of its layout has lost data.
    pub(crate) fn pool_instead(&self, client: &Client, node: u64) -> Option<String> {
        let layout = self.is_any().then(|| client.layout(node).ok())??;
        let losses = self.losses();
        losses.new_pool().filter(|_| losses.has_pool(&layout.pool)).map(str::to_owned)
    }

    fn losses(&self) -> Arc<Losses> {
        Arc::clone(&self.losses.read())
    }
}

/// The pool for new files when the file was last emptied, if that was after a loss.
fn emptied(client: &Client, node: u64) -> Option<String> {
    let mut value = [0; POOL_BYTES_MAX];
    let length = client.own_attribute(node, EMPTIED, &mut value).ok()?;
    String::from_utf8(value.get(..length)?.to_vec()).ok()
}
